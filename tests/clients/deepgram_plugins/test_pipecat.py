"""Pipecat's own Deepgram services, Aura's and Flux', told nothing but another address."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
from pipecat.frames.frames import (
    ErrorFrame,
    TTSAudioRawFrame,
    TTSStoppedFrame,
    TTSUpdateSettingsFrame,
)
from pipecat.services.deepgram.flux.tts import DeepgramFluxTTSService
from pipecat.services.deepgram.tts import DeepgramHttpTTSService, DeepgramTTSService

from tests.clients.pipecat_turns import (
    DELTAS,
    barge_in_and_next_turn,
    is_speech,
    pipeline,
    response,
    three_turns,
    turns_of_nothing_to_speak,
)
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


both = pytest.mark.parametrize("service", [aura, flux])


@both
async def test_three_turns(server: Server, service: Any) -> None:
    async with pipeline(service(server)) as rig:
        await three_turns(rig)
        contexts = {frame.context_id for frame in rig.of(TTSAudioRawFrame)}
        assert len(contexts) == 3
    await asyncio.to_thread(server.until, "tts_open_turns", 0)


@both
async def test_a_barge_in_and_the_next_turn(server: Server, service: Any) -> None:
    async with pipeline(service(server)) as rig:
        await barge_in_and_next_turn(rig, server)


@both
async def test_turns_of_nothing_to_speak_do_not_end_the_service(
    server: Server, service: Any
) -> None:
    async with pipeline(service(server)) as rig:
        await turns_of_nothing_to_speak(rig)


async def test_over_http(server: Server) -> None:
    async with aiohttp.ClientSession() as session:
        speaker = DeepgramHttpTTSService(
            api_key="none", base_url=server.url, aiohttp_session=session,
            settings=DeepgramHttpTTSService.Settings(voice="ava"),
        )  # fmt: skip
        async with pipeline(speaker) as rig:
            await rig.send(*response(*DELTAS))
            await rig.until(lambda: rig.of(TTSStoppedFrame) and is_speech(rig.seconds))
            assert not rig.of(ErrorFrame)


@both
async def test_the_key_is_checked(keyed_server: Server, service: Any) -> None:
    async with pipeline(service(keyed_server)) as rig:
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: rig.of(TTSStoppedFrame))
        assert is_speech(rig.seconds)
    async with pipeline(service(keyed_server, api_key="wrong")) as rig:
        await rig.until(lambda: rig.of(ErrorFrame))
        assert "401" in rig.of(ErrorFrame)[0].error


@both
@pytest.mark.parametrize("wrong", [{"voice": "nobody"}, {"speed": 1.2}])
async def test_what_cannot_be_had_is_told(
    server: Server, service: Any, wrong: dict[str, Any]
) -> None:
    async with pipeline(service(server, **wrong)) as rig:
        await rig.until(lambda: rig.of(ErrorFrame))
        told = rig.of(ErrorFrame)[0].error
        assert "HTTP 400" in told and ("ava" in told or "speed" in told)


async def test_a_speed_that_is_set_later_is_told_and_speech_goes_on(server: Server) -> None:
    async with pipeline(flux(server)) as rig:
        delta = DeepgramFluxTTSService.Settings(speed=1.2)
        await rig.send(TTSUpdateSettingsFrame(delta=delta))
        await rig.until(lambda: rig.of(ErrorFrame))
        assert "SPEED_NOT_SUPPORTED" in rig.of(ErrorFrame)[0].error
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: rig.of(TTSStoppedFrame))
        assert is_speech(rig.seconds)
