"""Checkpoints by the names that requests give."""

from __future__ import annotations

from realtime_tts.engine.interface import EngineInfo


def model_names(info: EngineInfo) -> list[str]:
    """Names of the loaded checkpoints."""
    return [one.model for one in info.models or (info,)]


def our_model(name: str | None, info: EngineInfo) -> str | None:
    """The loaded checkpoint of this name, if there is one: other APIs' models have other names."""
    return name if name in model_names(info) else None
