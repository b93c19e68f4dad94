"""The codec's state of every stream: convolution taps and attention windows.

It is one flat array [slots, size]. Each layer owns a region of it; a decode gathers the rows of its
slots once, the layers update their regions in place, and the rows are written back in one copy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a stream's memory: `rows` past steps of `channels` values, oldest first."""

    offset: int
    rows: int
    channels: int

    def of(self, memory: Tensor) -> Tensor:
        """Return the view [B, rows, channels] of memory [B, size]."""
        end = self.offset + self.rows * self.channels
        return memory[:, self.offset : end].unflatten(1, (self.rows, self.channels))


class StateLayout:
    """Assigns regions of the memory while a decoder is built."""

    def __init__(self) -> None:
        self.size = 0

    def add(self, rows: int, channels: int) -> Region:
        """Return a new region of `rows` steps of `channels` values."""
        region = Region(self.size, rows, channels)
        self.size += rows * channels
        return region


class StreamState(ABC):
    """State of several streams; index 0 of each tensor in `parts` is the slot."""

    parts: tuple[Tensor, ...]

    @abstractmethod
    def reset(self, which: Tensor) -> None:
        """Reset these slots [n] int64 to the start."""

    def save(self, slot: int) -> list[Tensor]:
        """Return a copy of one stream's state, which later decoding does not change."""
        return [part[slot].clone() for part in self.parts]

    def restore(self, slot: int, saved: Sequence[Tensor]) -> None:
        """Continue in `slot` where the saved stream was."""
        for part, kept in zip(self.parts, saved, strict=True):
            part[slot].copy_(kept)


class CodecState(StreamState):
    """Memory of `slots` streams, [slots, size]; zeros are the state before the first frame."""

    def __init__(self, slots: int, size: int, device: torch.device) -> None:
        self.memory = torch.zeros(slots, size, device=device)
        self.frames = torch.zeros(slots, dtype=torch.long, device=device)
        """Number of frames decoded so far, by slot."""
        self.parts = self.memory, self.frames

    def reset(self, which: list[int] | Tensor) -> None:
        """Reset slots to the start: slot numbers, or a mask [slots] of bool."""
        self.memory[which] = 0
        self.frames[which] = 0
