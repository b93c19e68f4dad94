"""The talker's keys and values, by slot, for plain modules.

One contiguous buffer per slot doubles when it is full: memory grows with the speech that is made, a
decode step copies only its own row, and attention reads views.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from realtime_tts.model.attention import attend_prompt, attend_row
from realtime_tts.model.config import TransformerConfig

_FIRST_CAPACITY = 256  # positions; 20 s of speech


class KVCache:
    """A growing buffer [layers, 2, kv_heads, capacity, D] per slot. Per step: `begin`, then one
    attend call per layer."""

    def __init__(
        self, config: TransformerConfig, slots: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self._config, self._device, self._dtype = config, device, dtype
        self.lengths = [0] * slots
        """Number of positions stored for each slot."""
        self._buffers: list[Tensor | None] = [None] * slots
        # Per slot and layer, views made once: Python is a large part of a step on the CPU.
        self._layers: list[list[Tensor]] = [[] for _ in range(slots)]
        self._rows: list[tuple[int, int]] = []  # (slot, position) of this step

    def clear(self, slot: int) -> None:
        """Clear a slot's positions."""
        self.lengths[slot] = 0
        buffer = self._buffers[slot]
        if buffer is not None and buffer.shape[3] > _FIRST_CAPACITY:
            self._buffers[slot] = None  # a long turn must not keep its memory for ever
            self._layers[slot] = []

    def begin(self, slots: Sequence[int], count: int) -> list[int]:
        """Make room for `count` further positions in each slot; return the position of the first.

        A slot that is named again gets the positions after those.
        """
        positions = []
        for slot in slots:
            position = self.lengths[slot]
            positions.append(position)
            self._reserve(slot, position + count)
            self.lengths[slot] = position + count
        self._rows = list(zip(slots, positions, strict=True))
        return positions

    def attend_prompt(self, layer: int, query: Tensor, keys_values: Tensor) -> Tensor:
        """Store a prompt in the one slot begun, which was empty, and attend causally.

        query [L, heads, D], keys_values [L, 2, kv_heads, D] -> [L, heads * D].
        """
        ((slot, position),) = self._rows
        assert position == 0, f"slot {slot} holds {position} positions; clear it first"
        length = query.shape[0]
        stored = self._layers[slot][layer][:, :, :length]
        stored.copy_(keys_values.permute(1, 2, 0, 3))
        key, value = stored.unbind(0)
        return attend_prompt(query.transpose(0, 1), key, value)

    def attend_step(self, layer: int, query: Tensor, keys_values: Tensor) -> Tensor:
        """Store one position for each slot begun; each row attends to all of its own slot.

        query [B, heads, D], keys_values [B, 2, kv_heads, D] -> [B, heads * D].
        """
        rows = []
        for (slot, position), q, kv in zip(
            self._rows, query.unbind(0), keys_values.unbind(0), strict=True
        ):
            stored = self._layers[slot][layer]
            stored[:, :, position] = kv
            key, value = stored[:, :, : position + 1].unbind(0)
            rows.append(attend_row(q, key, value))
        return torch.cat(rows) if len(rows) > 1 else rows[0]

    def keys(self, layer: int, slot: int, head: int, first: int, count: int) -> Tensor:
        """Return a view [count, D] of a slot's keys of one key head, from position `first` on."""
        return self._layers[slot][layer][0, head, first : first + count]

    def _reserve(self, slot: int, length: int) -> None:
        old = self._buffers[slot]
        capacity = _FIRST_CAPACITY if old is None else old.shape[3]
        if old is not None and length <= capacity:
            return
        while capacity < length:
            capacity *= 2
        config = self._config
        new = torch.zeros(
            (config.layers, 2, config.kv_heads, capacity, config.head_dim),
            device=self._device,
            dtype=self._dtype,
        )
        if old is not None:
            new[:, :, :, : old.shape[3]] = old
        self._buffers[slot] = new
        self._layers[slot] = list(new.unbind(0))
