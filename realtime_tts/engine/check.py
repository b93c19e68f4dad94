"""What a front can tell about a turn's settings without asking the engine."""

from __future__ import annotations

from collections.abc import Callable

from realtime_tts.engine.interface import EngineInfo, UtteranceSpec
from realtime_tts.errors import RequestError


def no_voice(name: str) -> bool:
    """Whether there is a registered voice of that name, on a server that registers none."""
    return False


def check_spec(
    info: EngineInfo, spec: UtteranceSpec, registered: Callable[[str], bool] = no_voice
) -> None:
    """Raise RequestError if the engine's checkpoint cannot do what `spec` asks.

    `registered` tells whether there is a registered voice of that name. The engine checks again
    when the turn opens, and knows more: its word is the last one.
    """
    voice = spec.voice
    there = voice is not None and registered(voice.lower())
    if voice and voice.lower() not in info.voices and not (info.clones and there):
        if there:
            raise RequestError(
                f"{voice!r} is a registered voice, which a Base checkpoint speaks with; "
                f"{info.model} is a {info.variant} checkpoint and has voices of its own only"
            )
        if not info.voices:
            raise RequestError(f"unknown voice {voice!r}: GET /v1/voices lists those there are")
        known = ", ".join(info.voices)
        raise RequestError(f"unknown voice {voice!r}; this checkpoint has: {known}")
    language = (spec.language or "auto").lower()
    if language not in info.languages:
        known = ", ".join(info.languages)
        raise RequestError(f"unknown language {spec.language!r}; this checkpoint has: {known}")
