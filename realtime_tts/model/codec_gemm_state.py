"""The codec's state of every stream, in the form that captured graphs update in place.

No row is ever gathered or put back: kernels find a row's state by its slot. All addresses stay the
same for the life of the state, and nothing on the host changes from call to call.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from realtime_tts.kernels.codec_past import Past
from realtime_tts.model.codec_state import Region, StateLayout, StreamState

MAX_FRAMES = 8
"""The most new frames of one call: the ring has room for this many beside the window."""
_ALIGNED = 16  # elements: a multiple lets kernels load 16 bytes at once


class AlignedLayout(StateLayout):
    """Assigns regions that begin at multiples of 16 elements."""

    def add(self, rows: int, channels: int) -> Region:
        region = super().add(rows, channels)
        self.size += -self.size % _ALIGNED
        return region


@dataclass(frozen=True, slots=True)
class RingShape:
    """Shape of the keys and values of all layers: a frame sees `window` frames, itself included."""

    layers: int
    heads: int
    head_dim: int
    window: int

    @property
    def frames(self) -> int:
        """Number of places in the ring, rounded up to a multiple of 16 for the kernel. With fewer,
        the last new frame of a call would overwrite one that the first new frame still attends
        to."""
        needed = self.window + MAX_FRAMES - 1
        return needed + -needed % 16


class GemmCodecState(StreamState):
    """State of `slots` streams, and of a scratch slot, number `slots`, for padding rows.

    For the released codec in bfloat16, a slot has 270 KB of taps, twice, and 2.6 MB of ring.
    """

    def __init__(
        self, slots: int, size: int, ring: RingShape, device: torch.device, dtype: torch.dtype
    ) -> None:
        count = slots + 1
        self.slots = slots
        self.taps = torch.zeros(count, 2, size, device=device, dtype=dtype)
        """Past steps of every convolution, [slots + 1, 2, size]; see `Past` for the two sides."""
        shape = (count, ring.layers, 2, ring.heads, ring.frames, ring.head_dim)
        self.ring = torch.zeros(shape, device=device, dtype=dtype)
        self.side = torch.zeros(count, dtype=torch.long, device=device)
        self.frames = torch.zeros(count, dtype=torch.long, device=device)
        """Number of frames decoded so far, by slot."""
        self.parts = self.taps, self.ring, self.side, self.frames

    def reset(self, which: Tensor) -> None:
        """Reset these slots [n] int64 to the start. The ring stays as it is, because places of
        frames that do not exist are not read."""
        self.taps.index_fill_(0, which, 0)
        self.frames.index_fill_(0, which, 0)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one call: `slots` [B] int64 on the device."""

    state: GemmCodecState
    slots: Tensor

    def past(self, region: Region) -> Past:
        """Return the carried steps of a layer, [slots + 1, 2, steps, channels], for these rows."""
        end = region.offset + region.rows * region.channels
        taps = self.state.taps[:, :, region.offset : end]
        shaped = taps.unflatten(2, (region.rows, region.channels))
        return Past(shaped, self.state.side, self.slots)
