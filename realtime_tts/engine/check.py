"""What a front can tell about a turn's settings without asking the engine."""

from __future__ import annotations

from realtime_tts.engine.interface import EngineInfo, UtteranceSpec
from realtime_tts.errors import RequestError


def check_spec(info: EngineInfo, spec: UtteranceSpec) -> None:
    """Raise RequestError if the engine's checkpoint cannot do what `spec` asks.

    The engine checks again when the turn opens, and knows more: its word is the last one.
    """
    voice = spec.voice
    # Which voices were cloned, and may be cloned meanwhile, is not in the engine's description.
    if voice and info.variant != "base" and voice.lower() not in info.voices:
        if not info.voices:
            raise RequestError(f"voice {voice!r} is unknown: this checkpoint has no named voices")
        known = ", ".join(info.voices)
        raise RequestError(f"unknown voice {voice!r}; this checkpoint has: {known}")
    language = (spec.language or "auto").lower()
    if language not in info.languages:
        known = ", ".join(info.languages)
        raise RequestError(f"unknown language {spec.language!r}; this checkpoint has: {known}")
