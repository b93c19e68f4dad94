"""Our service for Pipecat, as its tests make it."""

from __future__ import annotations

from typing import Any

from realtime_tts.adapters.pipecat import RealtimeTTSService

Settings = RealtimeTTSService.Settings


def service(server: str, **options: Any) -> RealtimeTTSService:
    options.setdefault("settings", Settings(layout="streaming", lead_ms=30_000))
    return RealtimeTTSService(server=server, **options)
