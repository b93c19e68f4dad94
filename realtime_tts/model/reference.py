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
from realtime_tts.voices.errors import wrong_length


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """A recording to clone: its speaker embedding [H] and, for in-context cloning, its codes [m,
    16] with the token ids of its transcript (both or neither).

    Equal only to itself, because what is prepared for a reference is cached by identity.
    """

    speaker: Tensor
    codes: Tensor | None = None
    text_ids: tuple[int, ...] = ()

    @property
    def text_ahead(self) -> int:
        """Text ids that an utterance's prompt takes in the streaming layout, if there are that
        many.

        One is over codec bos and one over each frame, those of the transcript first. If the
        transcript is longer, this is 0 or less, and its last -`text_ahead` ids go to the frames
        after frame 0.
        """
        return 1 if self.codes is None else len(self.codes) + 1 - len(self.text_ids)


def to_reference(
    voice: Voice, config: ModelConfig, encode: Callable[[str], Sequence[int]]
) -> Reference:
    """Return a voice in the form a prompt takes. `encode`: ids of plain text, no special tokens.

    Raises RequestError if the checkpoint cannot speak it.
    """
    hidden, speaker = config.talker.transformer.hidden, voice.embedding
    if len(speaker) != hidden:
        raise RequestError(
            wrong_length(voice.name, voice.model, len(speaker), config.family, hidden)
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
    # After the template's line end, which would merge with further ones.
    ids = encode("assistant\n" + voice.transcript.strip())[opening:]
    return Reference(speaker, voice.codes, tuple(ids))


_TAPS, _DILATIONS = 7, (1, 3, 9)
"""Taps of the codec's convolutions, and dilations of those in a residual unit."""

_KEPT = 16
"""Number of references whose codec state is cached, 5 MB each at release size."""

_PIECES = (8, 4, 2, 1)
"""Frames per call: the most that the codec for GPUs takes, and numbers with compiled kernels."""


class ContinuedCodec(SlotCodec[Any], Protocol):
    """A codec that can continue after frames for which it makes no sound."""

    config: CodecConfig

    def attend(self, codes: Tensor, slots: Tensor, state: Any) -> None:
        """Advance the state like `decode`, but without convolution state and without sound."""


def convolved_frames(config: CodecConfig) -> int:
    """Return how many past frames the codec's convolutions depend on, rounded up.

    It is the sum over the convolutions of what each depends on, in frames of as many steps as there
    are at its place.
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
    """Return how many past frames the codec's transformer depends on: a window less one for each
    layer, and two frames for the convolution before it."""
    return config.transformer.layers * (config.window - 1) + 2


class ReferenceSound:
    """Lets the codec continue after frames that are not decoded here, without an audible break.

    The official package decodes a reference's frames and the new ones together, and cuts off the
    sound of the former. Here the codec decodes the reference once; its state after it is cached,
    and copied into the slot of every utterance in that voice. Frames that another engine has spoken
    of an utterance are decoded after it: only as many of the last ones as the codec depends on, and
    most of these without the convolutions.
    """

    def __init__(self, codec: ContinuedCodec, state: StreamState) -> None:
        self._codec, self._state = codec, state
        self._reference_state = lru_cache(_KEPT)(self._make_reference_state)
        self._near = convolved_frames(codec.config)
        self._known = self._near + attended_frames(codec.config)

    @torch.inference_mode()
    def begin(self, slot: int, reference: Reference | None, spoken: Tensor | None = None) -> None:
        """Prepare `slot`, which was cleared, for the first frame after `reference` and after frames
        `spoken` [n, 16] that another engine made of the utterance."""
        codes = None if reference is None else reference.codes
        if spoken is not None:
            before = spoken if codes is None else torch.cat((codes.to(spoken), spoken))
            self._state.restore(slot, self._state_after(before))
        elif reference is not None and codes is not None:
            self._state.restore(slot, self._reference_state(reference))

    def _make_reference_state(self, reference: Reference) -> Any:
        assert reference.codes is not None, "only codes are decoded"
        return self._state_after(reference.codes)

    def _state_after(self, codes: Tensor) -> Any:
        """Return the state of a stream that decoded these codes [n, 16]."""
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
