"""What a session may ask for, what it has that asks for nothing, and what its settings mean for a
turn, to the engine and to the text."""

from __future__ import annotations

import secrets
from collections.abc import Hashable
from operator import attrgetter

from realtime_tts.audio.stages import Chain, Stages
from realtime_tts.config import ServerConfig
from realtime_tts.engine.interface import EngineInfo, UtteranceSpec
from realtime_tts.protocol.settings import Limits, SessionSettings
from realtime_tts.text.languages import Language, language_for


def wire_limits(config: ServerConfig, info: EngineInfo) -> Limits:
    """What `ready` tells every client, in the protocol's own units."""
    frame_seconds = info.samples_per_frame / info.sample_rate
    given = {name: getattr(config.limits, name) for name in Limits.__struct_fields__}
    given["max_turn_audio_ms"] = round(info.max_frames * frame_seconds * 1000)
    given["write_stall_ms"] = round(config.socket.write_stall * 1000)
    return Limits(**given)


def session_defaults(info: EngineInfo, lead_seconds: float) -> SessionSettings:
    """What a session gets that asks for nothing: the checkpoint's own defaults and the lead."""
    return SessionSettings(
        lead_ms=round(lead_seconds * 1000), voice=info.default_voice, sampling=info.default_sampling
    )


def number_language(settings: SessionSettings, info: EngineInfo) -> Language | None:
    """The language to say numbers in; None leaves them to the checkpoint.

    Where a checkpoint speaks one language only, a session need not name it.
    """
    if settings.text_normalization == "off":
        return None
    if settings.text_normalization == "auto" and not info.text_normalization:
        return None
    names = [name for name in info.languages if name != "auto"]
    named = (settings.language or "auto").lower() != "auto"
    return language_for(settings.language if named or len(names) != 1 else names[0])


_OF_SPEC = UtteranceSpec.__struct_fields__
_given = attrgetter(*_OF_SPEC)


def utterance_spec(settings: SessionSettings) -> UtteranceSpec:
    """What the engine is told about a turn with these settings; without a seed, a fresh one."""
    given = dict(zip(_OF_SPEC, _given(settings), strict=True))
    if settings.seed is None:
        given["seed"] = secrets.randbits(63)
    if settings.instructions is not None:
        given["instructions"] = _unicode(settings.instructions)
    return UtteranceSpec(**given)


def voice_of(settings: SessionSettings) -> Hashable:
    """What makes the pace of speech: turns that have it in common speak alike."""
    return settings.model, settings.voice, settings.language, settings.instructions


def chain_for(settings: SessionSettings, stages: Stages) -> Chain:
    """What the sound of one stream goes through on its way out."""
    return stages.chain(voice_of(settings), loudness=settings.loudness == "on")


def _unicode(text: str) -> str:
    """With surrogate pairs joined and lone surrogates replaced, which no encoding can carry: on
    the way to an engine's process they would cost the commands of everybody they travel with."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
