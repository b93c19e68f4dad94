"""Frames to PCM for a batch of slots, with codes read where the talker left them."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from realtime_tts.kernels.codec_output import pcm
from realtime_tts.model.codec_state import StreamState

_State = TypeVar("_State", bound=StreamState)


class SlotCodec(Protocol[_State]):
    """The interface that captured steps need of a codec: `CodecDecoder`, or a faster one."""

    @property
    def device(self) -> torch.device:
        """The device of the codec and its state."""

    def new_slot_state(self, slots: int) -> _State:
        """Return the state of `slots` slots, and of one more, number `slots`, for padding."""

    def decode(self, codes: Tensor, slots: Tensor, state: _State) -> Tensor:
        """Decode codes [B, T, 16] of slots [B] -> samples [B, T * samples per frame] in [-1, 1],
        without reading anything on the host."""


class CodecStep:
    """One codec call for a batch of slots, to be captured. Slot number `slots` is for padding.

    `inputs` [2 * rows] int64 is what a step of B rows reads: B slots, then the number of each one's
    first frame. `sound` returns what it leaves: int16 [rows, frames * samples per frame].
    """

    def __init__(
        self,
        codec: SlotCodec[Any],
        slots: int,
        ring: Tensor,
        samples_per_frame: int,
        most_frames: int,
    ) -> None:
        """`ring` [slots + 1, places, 16]: the codes of frame f are in place f % places.
        `most_frames`: the most frames of all rows of a step together."""
        self._codec, self.slots, self._ring, self._size = codec, slots, ring, samples_per_frame
        self.state = codec.new_slot_state(slots)
        self.inputs = torch.zeros(2 * most_frames, dtype=torch.long, device=ring.device)
        most = most_frames * samples_per_frame
        self._outputs = torch.zeros(most, dtype=torch.int16, device=ring.device)

    def begin(self, slots: Tensor) -> None:
        """Reset these slots [n] for new utterances."""
        self.state.reset(slots)

    def idle(self, rows: int) -> None:
        """Set inputs that touch no utterance."""
        slots, first = self.inputs[: 2 * rows].view(2, rows)
        slots.fill_(self.slots)
        first.zero_()

    def __call__(self, rows: int, frames: int) -> None:
        """Decode `frames` frames of each of the `rows` rows in `inputs`."""
        slots, first = self.inputs[: 2 * rows].view(2, rows).unbind(0)
        numbers = first.unsqueeze(1) + torch.arange(frames, device=first.device)
        codes = self._ring[slots.unsqueeze(1), numbers.remainder(self._ring.shape[1])]
        samples = self._codec.decode(codes, slots, self.state)
        self._outputs[: samples.numel()].copy_(pcm(samples.contiguous()).view(-1))

    def sound(self, rows: int, frames: int) -> Tensor:
        """Return the PCM of the last step's first `rows` rows: int16 [rows, frames * samples]."""
        size = frames * self._size
        return self._outputs[: rows * size].view(rows, size)
