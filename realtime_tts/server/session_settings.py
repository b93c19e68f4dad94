"""What a session may ask for, and what it has that asks for nothing."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from realtime_tts.config import ServerConfig
from realtime_tts.engine.interface import EngineInfo
from realtime_tts.protocol.settings import Limits, SessionSettings


def wire_limits(config: ServerConfig, info: EngineInfo) -> Limits:
    """What `ready` tells every client, in the protocol's own units."""
    limits = config.limits
    frame_seconds = info.samples_per_frame / info.sample_rate
    return Limits(
        max_message_bytes=limits.max_message_bytes,
        max_text_chars=limits.max_text_chars,
        max_turn_chars=limits.max_turn_chars,
        max_instructions_chars=limits.max_instructions_chars,
        max_queued_turns=limits.max_queued_turns,
        messages_per_second=limits.messages_per_second,
        message_burst=limits.message_burst,
        max_bad_messages=limits.max_bad_messages,
        bad_message_window_ms=round(limits.bad_message_window_seconds * 1000),
        max_lead_ms=round(limits.max_lead_seconds * 1000),
        max_turn_audio_ms=round(info.max_frames * frame_seconds * 1000),
        turn_idle_ms=round(limits.turn_idle_seconds * 1000),
        write_stall_ms=round(config.socket.write_stall * 1000),
    )


def session_defaults(info: EngineInfo, lead_seconds: float) -> SessionSettings:
    """What a session gets that asks for nothing: the checkpoint's own defaults and the lead."""
    return SessionSettings(
        lead_ms=round(lead_seconds * 1000),
        voice=info.default_voice,
        sampling=info.default_sampling,
    )


def chosen_settings(info: EngineInfo, lead_seconds: float, **chosen: Any) -> SessionSettings:
    """The defaults, but for what is chosen and not None."""
    given = {name: value for name, value in chosen.items() if value is not None}
    return replace(session_defaults(info, lead_seconds), **given)
