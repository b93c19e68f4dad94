"""What the codec remembers of every stream, in the form that captured graphs update in place.

No row is ever gathered or put back: kernels find a row's state by its slot. All addresses stay the
same for the life of the state, and nothing on the host changes from call to call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from realtime_tts.kernels.codec_past import Past
from realtime_tts.model.codec_state import Region, StateLayout

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


@dataclass(frozen=True, slots=True, eq=False)
class SavedGemmStream:
    """The saved state of one stream: its part of each of the state's tensors."""

    taps: Tensor
    ring: Tensor
    side: Tensor
    frames: Tensor


class GemmCodecState:
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
        self.ring = torch.zeros(
            count,
            ring.layers,
            2,
            ring.heads,
            ring.frames,
            ring.head_dim,
            device=device,
            dtype=dtype,
        )
        self.side = torch.zeros(count, dtype=torch.long, device=device)
        self.frames = torch.zeros(count, dtype=torch.long, device=device)
        """Frames decoded so far, by slot."""

    def save(self, slot: int) -> SavedGemmStream:
        """A copy of one stream, which later decoding does not change."""
        parts = (self.taps, self.ring, self.side, self.frames)
        return SavedGemmStream(*(part[slot].clone() for part in parts))

    def restore(self, slot: int, saved: SavedGemmStream) -> None:
        """Go on in `slot` where the saved stream was."""
        self.taps[slot].copy_(saved.taps)
        self.ring[slot].copy_(saved.ring)
        self.side[slot].copy_(saved.side)
        self.frames[slot].copy_(saved.frames)

    def reset(self, slots: Sequence[int] | Tensor) -> None:
        """Back to the start: slot numbers, on the device already where nothing may wait for it.

        The ring stays as it is: places of frames that never were are not read.
        """
        chosen = (
            slots
            if isinstance(slots, Tensor)
            else torch.tensor(slots, dtype=torch.long, device=self.frames.device)
        )
        self.taps.index_fill_(0, chosen, 0)
        self.frames.index_fill_(0, chosen, 0)


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
