"""Translates the settings of an utterance into the model's terms: a speaker, or a cloned voice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache

import torch

from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.errors import RequestError
from realtime_tts.model import (
    PromptBuilder,
    PromptSpec,
    Reference,
    Variant,
    Voice,
    VoiceLookup,
    to_reference,
)
from realtime_tts.model.config import ModelConfig
from realtime_tts.recent import Recent

_KEPT = 64
"""Number of voices that are kept with their tokenised transcripts, also when they are deleted."""


def no_voices(name: str, /) -> Voice | None:
    """A `VoiceLookup` for engines without registered voices."""
    return None


class SpokenAs:
    """Turns utterances' settings into prompt specs. For any thread: the event loop, too, asks an
    engine that runs in a thread of the server.

    `encode`: token ids of plain text. Equal settings give equal specs while a voice stays the same.
    """

    def __init__(
        self,
        config: ModelConfig,
        prompts: PromptBuilder,
        encode: Callable[[str], Sequence[int]],
        voices: VoiceLookup,
    ) -> None:
        self._config, self._prompts = config, prompts
        self._voices = voices
        self._of_voice: Callable[[Voice], Reference] = lru_cache(_KEPT)(
            lambda voice: to_reference(voice, config, encode)
        )
        self._last: Recent[str, Voice] = Recent(_KEPT)  # by name
        self._lock = threading.Lock()
        hidden = config.talker.transformer.hidden
        self._empty_reference = Reference(torch.zeros(hidden))

    @property
    def default_voice(self) -> str | None:
        """The speaker if none is named; None where instructions or a cloned voice decide."""
        return next(iter(self._config.speakers), None)

    def check(self, spec: UtteranceSpec) -> None:
        """Raise RequestError, which names a checkpoint that can, if this one cannot do it."""
        if self._config.variant is Variant.BASE and not spec.voice:
            raise RequestError(
                "a base checkpoint speaks cloned voices: name one of /v1/voices, or load a "
                "CustomVoice checkpoint, which has voices of its own"
            )
        self._prompts.check(self.prompt_spec(spec))

    def prompt_spec(self, spec: UtteranceSpec) -> PromptSpec:
        """Return the prompt's part of an utterance's settings. Raises RequestError for unknown
        voices.

        Without a voice, a Base checkpoint speaks with an empty reference, for warming up: `check`
        refuses that.
        """
        reference = None
        speaker = spec.voice or self.default_voice
        if self._config.variant is Variant.BASE:
            reference, speaker = self._reference(spec.voice, spec.begun), None
        elif spec.voice and spec.voice.lower() not in self._config.speakers:
            self._refuse_cloned(spec.voice)
        return PromptSpec(
            speaker=speaker,
            language=spec.language,
            instructions=spec.instructions,
            reference=reference,
        )

    def _reference(self, name: str | None, begun: bool) -> Reference:
        if not name:
            return self._empty_reference
        voice = self._known(name.lower(), begun)
        if voice is None:
            raise RequestError(
                f"unknown voice {name!r}: no voice of that name was cloned. A base checkpoint "
                "speaks cloned voices; a CustomVoice checkpoint has voices of its own"
            )
        with self._lock:
            return self._of_voice(voice)

    def _known(self, name: str, begun: bool) -> Voice | None:
        """Return the voice of this name; for a turn that has begun, also one that was deleted."""
        voice = self._voices(name)
        with self._lock:
            if voice is None:
                return self._last.get(name) if begun else None
            self._last[name] = voice
        return voice

    def _refuse_cloned(self, name: str) -> None:
        voice = self._voices(name.lower())
        if voice is not None:
            raise RequestError(
                f"voice {name!r} is a cloned one, which a {self._config.variant} checkpoint cannot "
                f"speak: load the Base checkpoint of its size ({voice.model})"
            )
