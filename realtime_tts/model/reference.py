"""A recording to clone, in the form in which a prompt contains it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any, Protocol

import torch
from torch import Tensor

from realtime_tts.errors import RequestError
from realtime_tts.model.codec_state import StreamState
from realtime_tts.model.codec_step import SlotCodec
from realtime_tts.model.config import CodecConfig, ModelConfig
from realtime_tts.model.voice import Voice


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """A recording to clone: its speaker embedding [H] and, for in-context cloning, its codes
    [m, 16] with the token ids of its transcript (both or neither).

    Equal only to itself, because what is prepared for a reference is kept by identity.
    """

    speaker: Tensor
    codes: Tensor | None = None
    text_ids: tuple[int, ...] = ()

    @property
    def text_ahead(self) -> int:
        """Text ids that an utterance's prompt takes in the streaming layout, if there are so many.

        One lies over codec bos and one over each frame, and the transcript's come first. Where it
        has more than that, the rest of them (the negative of this, less one) go to the next frames.
        """
        return 1 if self.codes is None else len(self.codes) + 1 - len(self.text_ids)


def to_reference(
    voice: Voice, config: ModelConfig, encode: Callable[[str], Sequence[int]]
) -> Reference:
    """A voice in the form a prompt takes. `encode`: ids of plain text, no special tokens.

    Raises RequestError if the checkpoint cannot speak it.
    """
    hidden, speaker = config.talker.transformer.hidden, voice.embedding
    if len(speaker) != hidden:
        raise RequestError(
            f"voice {voice.name!r} was made for {voice.model}: its embedding has {len(speaker)} "
            f"numbers, this checkpoint ({config.family}) takes {hidden}. A Base checkpoint of the "
            "voice's own size can speak it, or clone it again with this one"
        )
    if voice.codes is None:
        return Reference(speaker)
    groups, size = config.talker.code_groups, config.predictor.vocab
    found, highest = voice.codes.shape[1], int(voice.codes.max())
    if found != groups or highest >= size or int(voice.codes.min()) < 0:
        raise RequestError(
            f"voice {voice.name!r} has {found} codes per frame, the highest {highest}; this "
            f"checkpoint has {groups}, below {size}: clone the voice again with it"
        )
    assert voice.transcript is not None, "codes come with a transcript"
    opening = len(encode("assistant\n"))
    # Behind the template's line end, which would swallow further ones.
    ids = encode("assistant\n" + voice.transcript.strip())[opening:]
    return Reference(speaker, voice.codes, tuple(ids))


_TAPS, _DILATIONS = 7, (1, 3, 9)
"""Of the codec's convolutions, and of those of a residual unit."""

_KEPT = 16
"""References whose state is kept, 5 MB each at release size."""

_PIECES = (8, 4, 2, 1)
"""Frames of a call: what the codec for GPUs takes at most, and has compiled kernels for."""


class ContinuedCodec(SlotCodec[Any], Protocol):
    """A codec that can go on behind frames which it makes no sound of."""

    config: CodecConfig

    def attend(self, codes: Tensor, slots: Tensor, state: Any) -> None:
        """As `decode`, but the state of the convolutions stays behind, and there is no sound."""


def convolved_frames(config: CodecConfig) -> int:
    """Frames that the codec's convolutions know of the past, those before the last one in part.

    The sum of what each of them knows, in frames of as many steps as there are at its place.
    """
    known, steps = Fraction(0), 1
    for ratio in config.upsampling_ratios:
        steps *= ratio
        known += Fraction(_TAPS - 1, steps)  # ConvNeXt; an upsampling by `ratio` taps knows no past
    known += Fraction(_TAPS - 1, steps)
    for rate in config.upsample_rates:
        known += Fraction(1, steps)  # upsampling by two taps a step
        steps *= rate
        known += Fraction((_TAPS - 1) * sum(_DILATIONS), steps)
    return ceil(known + Fraction(_TAPS - 1, steps))


def attended_frames(config: CodecConfig) -> int:
    """Frames that the codec's transformer knows of the past: its layers know a window each, and the
    convolution before it two frames."""
    return config.transformer.layers * (config.window - 1) + 2


class ReferenceSound:
    """The codec's sound behind frames that are not decoded here: speech goes on without a seam.

    The official package decodes a reference's frames and the new ones together, and cuts the sound
    of the former off. Here the codec hears the reference once; its state behind it is kept, and
    copied into the slot of every utterance in that voice. What another engine has spoken of an
    utterance is heard behind it: as many of the last frames as the codec knows of, and all but the
    last few of them without the convolutions.
    """

    def __init__(self, codec: ContinuedCodec, state: StreamState) -> None:
        self._codec, self._state = codec, state
        self._behind = lru_cache(_KEPT)(self._heard_reference)
        self._near = convolved_frames(codec.config)
        self._known = self._near + attended_frames(codec.config)

    @torch.inference_mode()
    def begin(self, slot: int, reference: Reference | None, spoken: Tensor | None = None) -> None:
        """Ready `slot`, which was cleared, for the first frame behind `reference` and frames of the
        utterance itself, `spoken` [n, 16] elsewhere."""
        codes = None if reference is None else reference.codes
        if spoken is not None:
            before = spoken if codes is None else torch.cat((codes.to(spoken), spoken))
            self._state.restore(slot, self._heard(before))
        elif reference is not None and codes is not None:
            self._state.restore(slot, self._behind(reference))

    def _heard_reference(self, reference: Reference) -> Any:
        assert reference.codes is not None, "only codes are heard"
        return self._heard(reference.codes)

    def _heard(self, codes: Tensor) -> Any:
        """The state of a stream that decoded these codes [n, 16]."""
        state, device = self._codec.new_slot_state(1), self._codec.device
        slots = torch.zeros(1, dtype=torch.long, device=device)
        known = codes[-self._known :].to(device, torch.long)
        state.frames[0] = len(codes) - len(known)
        for piece in _pieces(known[: -self._near]):
            self._codec.attend(piece.unsqueeze(0), slots, state)
        for piece in _pieces(known[-self._near :]):
            self._codec.decode(piece.unsqueeze(0), slots, state)
        return state.save(0)


def _pieces(codes: Tensor) -> Iterator[Tensor]:
    at = 0
    for size in _PIECES:
        while len(codes) - at >= size:
            yield codes[at : at + size]
            at += size
