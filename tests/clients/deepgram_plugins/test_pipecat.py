"""Pipecat's own Deepgram services, Aura's and Flux': what is their own, beside
plugins/test_pipecat.py."""

from __future__ import annotations

from typing import Any

import pytest
from pipecat.frames.frames import TTSUpdateSettingsFrame
from pipecat.services.deepgram.flux.tts import DeepgramFluxTTSService
from pipecat.services.deepgram.tts import DeepgramHttpTTSService, DeepgramTTSService

from tests.clients.pipecat_turns import Service, pipeline
from tests.clients.serving import Server


def aura(server: Server, api_key: str | None = None, **settings: Any) -> DeepgramTTSService:
    asked = DeepgramTTSService.Settings(**{"voice": "aura-2-ava-en"} | settings)
    key = api_key or server.api_key or "none"
    return DeepgramTTSService(api_key=key, base_url=server.websocket_url, settings=asked)


def flux(server: Server, api_key: str | None = None, **settings: Any) -> DeepgramFluxTTSService:
    asked = DeepgramFluxTTSService.Settings(**{"voice": "flux-ava-en"} | settings)
    key = api_key or server.api_key or "none"
    url = f"{server.websocket_url}/v2/speak"
    return DeepgramFluxTTSService(api_key=key, url=url, settings=asked, tag=["a", "b"])


def http(server: Server, session: Any) -> DeepgramHttpTTSService:
    return DeepgramHttpTTSService(
        api_key="none",
        base_url=server.url,
        aiohttp_session=session,
        settings=DeepgramHttpTTSService.Settings(voice="ava"),
    )


SERVICES = [
    Service("aura", aura, http, words=False),
    Service("flux", flux, words=False),
]


@pytest.mark.parametrize("service", [aura, flux])
async def test_what_cannot_be_had_is_told(server: Server, service: Any) -> None:
    async with pipeline(service(server, voice="nobody")) as rig:
        told = await rig.first_error()
        assert "HTTP 400" in told and "ava" in told


async def test_a_speed_can_be_set_later(server: Server) -> None:
    async with pipeline(flux(server)) as rig:
        delta = DeepgramFluxTTSService.Settings(speed=1.2)
        await rig.send(TTSUpdateSettingsFrame(delta=delta))
        await rig.one_turn()
