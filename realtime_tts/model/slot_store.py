"""The talker's keys and values as captured steps need them: by slot, at fixed addresses.

`SlotStore` is what both stores have in common; how a step attends is each one's own. Room is
reserved on the host before a step; inside it nothing is allocated and nothing is asked of the
host. Slot number `slots` is one more, for the rows that pad a batch: it needs no reservation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.errors import OutOfPages
from realtime_tts.model.config import TransformerConfig
from realtime_tts.model.paged_cache import PagedKVCache
from realtime_tts.model.pages import PAGE_SIZE
from realtime_tts.model.prompt_rows import PromptRows

_AT_ONCE = 64  # positions of a prompt: of each, all that its slot could hold is looked at


class SlotStore(Protocol):
    """Keys and values by slot. B rows, of which those that pad name the slot `slots`."""

    # On the host.

    @property
    def free_positions(self) -> int:
        """Positions that could still be reserved, in one slot or in several."""

    @property
    def positions(self) -> int:
        """Positions there are in all."""

    def reserve(self, slot: int, positions: int) -> None:
        """Make sure that a slot has room for so many positions in all.

        Raises OutOfPages; the slot then has the room it had before.
        """

    def clear(self, slot: int) -> None:
        """Give back all that a slot reserved; may be repeated."""

    def upload(self) -> None:
        """Tell the device what was reserved and cleared; before anything below is called."""

    # On the device.

    def copy_prefix(self, slots: Sequence[int], kv: Tensor) -> None:
        """Store kv [layers, 2, kv_heads, n, D], on any device, as the slots' first n positions."""

    def read(self, slot: int, n: int) -> Tensor:
        """A copy [layers, 2, kv_heads, n, D] of a slot's first n positions."""


class DenseSlotStore:
    """The plain dense store: [layers, slots + 1, 2, kv_heads, capacity, D], attended to whole.

    Simple enough to be right, and the same on every device; its time and memory follow the
    capacity, not the speech really made. `positions` bounds what all slots reserve together.
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
        self._slots, self._capacity, self._positions = slots, capacity, positions
        self._pages = [0] * slots  # reserved by each slot
        self._free = positions // PAGE_SIZE
        self._store = torch.zeros(
            (config.layers, slots + 1, 2, config.kv_heads, capacity, config.head_dim),
            device=device,
            dtype=dtype,
        )
        self._places = torch.arange(capacity, device=device)

    @property
    def positions(self) -> int:
        return self._positions

    @property
    def free_positions(self) -> int:
        return self._free * PAGE_SIZE

    def reserve(self, slot: int, positions: int) -> None:
        more = -(-positions // PAGE_SIZE) - self._pages[slot]
        if positions > self._capacity or more > self._free:
            raise OutOfPages(f"slot {slot} needs {more} more pages; {self._free} are free")
        if more > 0:
            self._pages[slot] += more
            self._free -= more

    def clear(self, slot: int) -> None:
        self._free += self._pages[slot]
        self._pages[slot] = 0
        # A NaN left behind would come through the mask: its weight is 0, and 0 * NaN is NaN.
        self._store[:, slot] = 0

    def upload(self) -> None:
        """The device reads no tables."""

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
