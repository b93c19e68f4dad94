"""What a session may ask for, its defaults, and its settings as the engine and the text need
them."""

from __future__ import annotations

import secrets
from collections.abc import Hashable
from operator import attrgetter

from realtime_tts.audio.stages import Chain
from realtime_tts.config import ServerConfig
from realtime_tts.engine.interface import EngineInfo, UtteranceSpec
from realtime_tts.languages import AUTO, known_as
from realtime_tts.protocol.parsing import valid_unicode
from realtime_tts.protocol.settings import Limits, SessionSettings
from realtime_tts.server.engine_host import EngineHost
from realtime_tts.text.languages import Language, language_for
from realtime_tts.voices.file import VoiceRecord


def wire_limits(config: ServerConfig, info: EngineInfo) -> Limits:
    """Return the limits for `ready`, in the protocol's own units."""
    frame_seconds = info.samples_per_frame / info.sample_rate
    given = {name: getattr(config.limits, name) for name in Limits.__struct_fields__}
    given["max_turn_audio_ms"] = round(info.max_frames * frame_seconds * 1000)
    given["write_stall_ms"] = round(config.socket.write_stall * 1000)
    return Limits(**given)


def session_defaults(info: EngineInfo, lead_seconds: float) -> SessionSettings:
    """Return the settings of a session that asks for nothing: the checkpoint's and the lead."""
    return SessionSettings(
        lead_ms=round(lead_seconds * 1000), voice=info.default_voice, sampling=info.default_sampling
    )


def number_language(settings: SessionSettings, info: EngineInfo) -> Language | None:
    """Return the language to say numbers in; None leaves them to the checkpoint."""
    if settings.text_normalization == "off":
        return None
    if settings.text_normalization == "auto" and not info.text_normalization:
        return None
    return language_for(spoken_language(settings, info))


def spoken_language(settings: SessionSettings, info: EngineInfo) -> str:
    """Return the language of a session. It need not name the only one of a checkpoint."""
    named = known_as(settings.language)
    names = [name for name in info.languages if name != AUTO]
    return names[0] if named == AUTO and len(names) == 1 else named


_OF_SPEC = tuple(name for name in UtteranceSpec.__struct_fields__ if name != "begun")
_given = attrgetter(*_OF_SPEC)


def utterance_spec(settings: SessionSettings) -> UtteranceSpec:
    """Return what the engine needs for a turn with these settings; without a seed, a fresh one."""
    given = dict(zip(_OF_SPEC, _given(settings), strict=True))
    if settings.seed is None:
        given["seed"] = secrets.randbits(63)
    if settings.instructions is not None:
        # A lone surrogate would break every command in the same message to an engine's process.
        given["instructions"] = valid_unicode(settings.instructions)
    return UtteranceSpec(**given)


def registered_voice(settings: SessionSettings, engine: EngineHost) -> VoiceRecord | None:
    """Return the registered voice that speaks; None if a speaker of the checkpoint does."""
    return engine.registered(settings.voice.lower()) if settings.voice else None


def voice_of(settings: SessionSettings, registered: VoiceRecord | None) -> Hashable:
    """Return what determines pace and loudness: turns with equal values speak alike. A voice that
    was deleted and made again under its name is another one."""
    voice = registered or (settings.voice or "").lower()
    return settings.model, voice, known_as(settings.language), settings.instructions


def chain_for(settings: SessionSettings, engine: EngineHost) -> Chain:
    """Return the audio stages of one stream."""
    loud = settings.loudness == "on"
    voice = voice_of(settings, registered_voice(settings, engine)) if loud else None
    return engine.stages.chain(voice, loudness=loud)
