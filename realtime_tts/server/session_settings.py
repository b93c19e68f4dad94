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
    same = {
        name: getattr(limits, name) for name in Limits.__struct_fields__ if hasattr(limits, name)
    }
    return Limits(
        **same,
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
