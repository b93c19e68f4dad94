"""The codec as it is behind a reference: speech that goes on in its sound, without a seam.

The official package decodes the reference's frames and the new ones together and cuts the sound of
the former off. Here the codec hears the reference once; its state behind it is kept, and copied
into the slot of every utterance in that voice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from realtime_tts.model.codec_step import SlotCodec, SlotState
from realtime_tts.model.recent import Recent
from realtime_tts.model.reference import Reference

_KEPT = 16
"""References whose state is kept, 5 MB each at release size."""

_PIECES = (8, 4, 2, 1)
"""Frames of a call: what the codec for GPUs takes at most, and has compiled kernels for."""


class ReferenceSound:
    """Begins utterances on one codec state."""

    def __init__(self, codec: SlotCodec[Any], state: SlotState) -> None:
        self._codec, self._state = codec, state
        self._kept: Recent[Reference, Any] = Recent(_KEPT)

    @torch.inference_mode()
    def begin(self, slot: int, reference: Reference | None) -> None:
        """Ready `slot`, which was cleared, for the first frame behind `reference`."""
        if reference is not None and reference.codes is not None:
            codes = reference.codes
            self._state.restore(slot, self._kept.get(reference, lambda: self._heard(codes)))

    def _heard(self, codes: Tensor) -> Any:
        """The state of a stream that decoded codes [m, 16]."""
        state, device = self._codec.new_slot_state(1), self._codec.device
        slots = torch.zeros(1, dtype=torch.long, device=device)
        for piece in _pieces(codes.to(device, torch.long)):
            self._codec.decode(piece.unsqueeze(0), slots, state)
        return state.save(0)


def _pieces(codes: Tensor) -> Iterator[Tensor]:
    at = 0
    for size in _PIECES:
        while len(codes) - at >= size:
            yield codes[at : at + size]
            at += size
