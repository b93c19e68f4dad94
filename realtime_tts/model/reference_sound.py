"""The codec as it is behind a reference: speech that goes on in its sound, without a seam.

The official package decodes the reference's frames and the new ones together and cuts the sound of
the former off. Here the codec hears the reference once; its state behind it is kept, and copied
into the slot of every utterance in that voice.
"""

from __future__ import annotations

import torch

from realtime_tts.model.codec import CodecDecoder
from realtime_tts.model.codec_state import CodecState, SavedStream
from realtime_tts.model.recent import Recent
from realtime_tts.model.reference import Reference

_KEPT = 16
"""References whose state is kept, 5 MB each at release size."""


class ReferenceSound:
    """Begins utterances on one codec state."""

    def __init__(self, codec: CodecDecoder, state: CodecState) -> None:
        self._codec, self._state = codec, state
        self._kept: Recent[Reference, SavedStream] = Recent(_KEPT)

    @torch.inference_mode()
    def begin(self, slot: int, reference: Reference | None) -> None:
        """Ready `slot`, which was cleared, for the first frame behind `reference`."""
        if reference is not None and reference.codes is not None:
            self._state.restore(slot, self._kept.get(reference, lambda: self._heard(reference)))

    def _heard(self, reference: Reference) -> SavedStream:
        assert reference.codes is not None
        state = self._codec.new_state(1)
        self._codec.decode(reference.codes[None], [0], state)
        return state.save(0)
