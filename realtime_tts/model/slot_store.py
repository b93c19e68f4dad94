"""The talker's keys and values as captured steps need them: by slot, at fixed addresses.

`SlotStore` is what both stores have in common; how a step attends is each one's own. Slots are
given pages before a step; inside it nothing is allocated and nothing is asked of the host. Slot
number `slots` is one more, for the rows that pad a batch: it needs no pages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.model.config import TransformerConfig
from realtime_tts.model.paged_cache import PAGE_SIZE, PagedKVCache, TableEntry
from realtime_tts.model.prompt_rows import PromptRows

_AT_ONCE = 64  # positions of a prompt: of each, all that its slot could hold is looked at


class SlotStore(Protocol):
    """Keys and values by slot. B rows, of which those that pad name the slot `slots`."""

    positions: int
    """Positions there are in all."""

    # On the host.

    def capacity(self, slot: int) -> int:
        """Positions that the slot has room for now."""

    def upload(self, entries: Sequence[TableEntry]) -> None:
        """Add pages to block tables; before anything below is called."""

    def clear(self, slot: int) -> None:
        """A slot has no pages any more; may be repeated."""

    # On the device.

    def copy_prefix(self, slots: Sequence[int], kv: Tensor) -> None:
        """Store kv [layers, 2, kv_heads, n, D], on any device, as the slots' first n positions."""

    def read(self, slot: int, n: int) -> Tensor:
        """A copy [layers, 2, kv_heads, n, D] of a slot's first n positions."""


class DenseSlotStore:
    """The plain dense store: [layers, slots + 1, 2, kv_heads, capacity, D], attended to whole.

    Simple enough to be right, and the same on every device; its time and memory follow the
    capacity, not the speech really made. It has no pages: any slot may hold `capacity` positions.
    `positions` is what is said to be there in all.
    """

    def __init__(
        self,
        config: TransformerConfig,
        slots: int,
        capacity: int,
        positions: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self._capacity, self.positions = capacity, positions
        self._store = torch.zeros(
            (config.layers, slots + 1, 2, config.kv_heads, capacity, config.head_dim),
            device=device,
            dtype=dtype,
        )
        self._places = torch.arange(capacity, device=device)

    def capacity(self, slot: int) -> int:
        return self._capacity

    def upload(self, entries: Sequence[TableEntry]) -> None:
        """The device reads no tables."""

    def clear(self, slot: int) -> None:
        # A NaN left behind would come through the mask: its weight is 0, and 0 * NaN is NaN.
        self._store[:, slot] = 0

    def attend_step(
        self, layer: int, query: Tensor, keys_values: Tensor, slots: Tensor, positions: Tensor
    ) -> Tensor:
        """Store one position of each row; it attends to its slot's positions up to this one.

        query [B, heads, D], keys_values [B, 2, kv_heads, D], slots [B], positions [B] int64 ->
        [B, heads * D].
        """
        self._put(layer, slots, positions, keys_values)
        key, value = self._store[layer].index_select(0, slots).unbind(1)
        masked = self._places > positions.unsqueeze(1)
        return _attend(query.unsqueeze(1), key, value, masked.unsqueeze(1)).squeeze(1)

    def attend_prompt(
        self, layer: int, query: Tensor, keys_values: Tensor, rows: PromptRows
    ) -> Tensor:
        """Store prompts; each position attends to its slot's positions up to itself.

        query [N, heads, D], keys_values [N, 2, kv_heads, D] -> [N, heads * D]. What the padding
        gives is finite where its input is, and is never seen.
        """
        self._put(layer, rows.owners, rows.places, keys_values)
        parts = []
        for first in range(0, len(query), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            key, value = self._store[layer].index_select(0, rows.owners[part]).unbind(1)
            masked = self._places > rows.places[part].unsqueeze(1)
            parts.append(_attend(query[part].unsqueeze(1), key, value, masked.unsqueeze(1)))
        return torch.cat(parts).squeeze(1)

    def copy_prefix(self, slots: Sequence[int], kv: Tensor) -> None:
        for slot in slots:
            self._store[:, slot, :, :, : kv.shape[3]] = kv

    def read(self, slot: int, n: int) -> Tensor:
        return self._store[:, slot, :, :, :n].clone()

    def _put(self, layer: int, slots: Tensor, positions: Tensor, keys_values: Tensor) -> None:
        """keys_values [n, 2, kv_heads, D] to (slot, position) pairs."""
        self._store[layer].permute(0, 3, 1, 2, 4).index_put_((slots, positions), keys_values)


def _attend(query: Tensor, key: Tensor, value: Tensor, masked: Tensor) -> Tensor:
    """query [B, L, heads, D]; key, value [B, kv_heads, N, D]; masked [B, L, N] ->
    [B, L, heads * D].

    On a CPU plain products and sums, for which a row is the same in every batch (`attention.py`).
    """
    rows, length, heads, dim = query.shape
    if query.device.type != "cpu":
        out = F.scaled_dot_product_attention(
            query.transpose(1, 2),
            key,
            value,
            attn_mask=~masked.unsqueeze(1),
            enable_gqa=heads != key.shape[1],
        )
        return out.transpose(1, 2).reshape(rows, length, heads * dim)
    kv_heads = key.shape[1]
    grouped = query.view(rows, length, kv_heads, heads // kv_heads, 1, dim)
    scores = (grouped * key.view(rows, 1, kv_heads, 1, -1, dim)).sum(-1).mul_(1 / math.sqrt(dim))
    weights = scores.masked_fill_(masked.view(rows, length, 1, 1, -1), -math.inf).softmax(-1)
    attended = weights.unsqueeze(-1) * value.view(rows, 1, kv_heads, 1, -1, dim)
    return attended.sum(-2).view(rows, length, heads * dim)


def new_store(
    config: TransformerConfig,
    slots: int,
    positions: int,
    device: torch.device,
    dtype: torch.dtype,
) -> SlotStore:
    """The store that captured steps use, for `positions` in all slots together: pages on a GPU; on
    a CPU, where equal rows are to give equal bits, the dense one."""
    if device.type == "cpu":
        capacity = min(config.max_positions, positions)
        return DenseSlotStore(config, slots, capacity, positions, device, dtype)
    return PagedKVCache(config, slots, positions // PAGE_SIZE, device, dtype)
