"""What the codec remembers of every stream, in the form that captured graphs update in place.

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
"""New frames of one call at most: the ring has room for so many beside the window."""
_ALIGNED = 16  # elements: a multiple lets kernels load 16 bytes at once


class AlignedLayout(StateLayout):
    """Hands out regions that begin at multiples of 16 elements."""

    def add(self, rows: int, channels: int) -> Region:
        region = super().add(rows, channels)
        self.size += -self.size % _ALIGNED
        return region


@dataclass(frozen=True, slots=True)
class RingShape:
    """Keys and values of all layers: `window` frames are seen, the present one included."""

    layers: int
    heads: int
    head_dim: int
    window: int

    @property
    def frames(self) -> int:
        """Places of a ring, a whole number of the kernel's pieces. With fewer than this, the
        last new frame of a call would overwrite one that the first still has to see."""
        needed = self.window + MAX_FRAMES - 1
        return needed + -needed % 16


class GemmCodecState(StreamState):
    """State of `slots` streams and of a scratch slot, number `slots`, for padding rows.

    The released codec has 270 KB of taps, twice, and 2.6 MB of ring by slot in bfloat16.
    """

    def __init__(
        self, slots: int, size: int, ring: RingShape, device: torch.device, dtype: torch.dtype
    ) -> None:
        count = slots + 1
        self.slots = slots
        self.taps = torch.zeros(count, 2, size, device=device, dtype=dtype)
        """Steps before the present ones, of every convolution; see `Past` for the two sides."""
        shape = (count, ring.layers, 2, ring.heads, ring.frames, ring.head_dim)
        self.ring = torch.zeros(shape, device=device, dtype=dtype)
        self.side = torch.zeros(count, dtype=torch.long, device=device)
        self.frames = torch.zeros(count, dtype=torch.long, device=device)
        """Frames decoded so far, by slot."""
        self.parts = self.taps, self.ring, self.side, self.frames

    def reset(self, which: Tensor) -> None:
        """Back to the start in these slots [n] int64. The ring stays as it is: places of frames
        that never were are not read."""
        self.taps.index_fill_(0, which, 0)
        self.frames.index_fill_(0, which, 0)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one call: `slots` [B] int64 on the device."""

    state: GemmCodecState
    slots: Tensor

    def past(self, region: Region) -> Past:
        end = region.offset + region.rows * region.channels
        taps = self.state.taps[:, :, region.offset : end]
        shaped = taps.unflatten(2, (region.rows, region.channels))
        return Past(shaped, self.state.side, self.slots)
