"""Frames to PCM for a batch of slots, codes read where the talker left them."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from realtime_tts.kernels.codec_output import pcm
from realtime_tts.model.codec_state import StreamState

_State = TypeVar("_State", bound=StreamState)


class SlotCodec(Protocol[_State]):
    """What a codec has to be for captured steps: `CodecDecoder`, or a faster one."""

    @property
    def device(self) -> torch.device:
        """The device on which the codec and its state are."""

    def new_slot_state(self, slots: int) -> _State:
        """State of `slots` slots, and of one more, number `slots`, for padding."""

    def decode(self, codes: Tensor, slots: Tensor, state: _State) -> Tensor:
        """codes [B, T, 16] of slots [B] -> samples [B, T * samples per frame] in [-1, 1]. Nothing
        is asked of the host."""


class CodecStep:
    """`inputs` [2 * rows] int64 is what a step of B rows reads: B slots, then the number of each
    one's first frame; `sound` [rows, frames * samples per frame] int16 is what it leaves.

    Slot number `slots` is for padding.
    """

    def __init__(
        self,
        codec: SlotCodec[Any],
        slots: int,
        ring: Tensor,
        samples_per_frame: int,
        most_frames: int,
    ) -> None:
        """`ring` [slots + 1, places, 16]: codes of frame f in place f % places. `most_frames`: of
        all rows of a step together."""
        self._codec, self.slots, self._ring, self._size = codec, slots, ring, samples_per_frame
        self.state = codec.new_slot_state(slots)
        self.inputs = torch.zeros(2 * most_frames, dtype=torch.long, device=ring.device)
        most = most_frames * samples_per_frame
        self._outputs = torch.zeros(most, dtype=torch.int16, device=ring.device)

    def begin(self, slots: Tensor) -> None:
        """New utterances in these slots [n]."""
        self.state.reset(slots)

    def idle(self, rows: int) -> None:
        """Make inputs that touch no utterance."""
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
        """What the last step left for its first `rows` rows: PCM [rows, frames * samples]."""
        size = frames * self._size
        return self._outputs[: rows * size].view(rows, size)
