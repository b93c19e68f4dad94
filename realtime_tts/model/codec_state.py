"""What the codec remembers of every stream: convolution taps and attention windows.

One flat arena [slots, size]. Each layer owns a region of it; a decode gathers the rows of its
slots once, the layers update their regions in place, and the rows go back in one copy.
"""

from __future__ import annotations

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
        """The view [B, rows, channels] of memory [B, size]."""
        end = self.offset + self.rows * self.channels
        return memory[:, self.offset : end].unflatten(1, (self.rows, self.channels))


class StateLayout:
    """Hands out regions while a decoder is built."""

    def __init__(self) -> None:
        self.size = 0

    def add(self, rows: int, channels: int) -> Region:
        region = Region(self.size, rows, channels)
        self.size += rows * channels
        return region


@dataclass(frozen=True, slots=True, eq=False)
class SavedStream:
    """A stream's memory [size], and how many frames it has decoded [1]."""

    memory: Tensor
    frames: Tensor


class CodecState:
    """Memory of `slots` streams; zeros are the state before the first frame."""

    def __init__(self, slots: int, size: int, device: torch.device) -> None:
        self.memory = torch.zeros(slots, size, device=device)
        self.frames = torch.zeros(slots, dtype=torch.long, device=device)
        """Frames decoded so far, by slot."""

    @property
    def slots(self) -> int:
        return self.memory.shape[0]

    def reset(self, which: Sequence[int] | Tensor) -> None:
        """Back to the start: slot numbers, or a mask [slots] of bool."""
        chosen = which if isinstance(which, Tensor) else list(which)
        self.memory[chosen] = 0
        self.frames[chosen] = 0

    def save(self, slot: int) -> SavedStream:
        """A copy of one stream, which later decoding does not change."""
        return SavedStream(self.memory[slot].clone(), self.frames[slot : slot + 1].clone())

    def restore(self, slot: int, saved: SavedStream) -> None:
        """Go on in `slot` where the saved stream was."""
        self.memory[slot].copy_(saved.memory)
        self.frames[slot : slot + 1].copy_(saved.frames)
