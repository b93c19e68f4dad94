"""Pipecat's own ElevenLabs services; their tests are those of plugins/test_pipecat.py."""

from __future__ import annotations

from typing import Any

from pipecat.services.elevenlabs.tts import ElevenLabsHttpTTSService, ElevenLabsTTSService
from pipecat.services.tts_service import TextAggregationMode

from tests.clients.pipecat_turns import Service
from tests.clients.serving import Server


def websocket(server: Server, **options: Any) -> ElevenLabsTTSService:
    settings = ElevenLabsTTSService.Settings(voice="ava")
    key = options.pop("api_key", server.api_key or "none")
    return ElevenLabsTTSService(api_key=key, url=server.websocket_url, settings=settings, **options)


def http(server: Server, session: Any) -> ElevenLabsHttpTTSService:
    return ElevenLabsHttpTTSService(
        api_key="none",
        base_url=server.url,
        aiohttp_session=session,
        settings=ElevenLabsHttpTTSService.Settings(voice="ava"),
    )


SERVICES = [
    Service(
        "elevenlabs",
        websocket,
        http,
        ways=[
            {"text_aggregation_mode": mode}
            for mode in (TextAggregationMode.SENTENCE, TextAggregationMode.TOKEN)
        ],
        timed=True,
    )
]
