"""Pipecat's own Cartesia services, told nothing but another address."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
from pipecat.frames.frames import (
    ErrorFrame,
    TTSAudioRawFrame,
    TTSStoppedFrame,
)
from pipecat.services.cartesia.tts import (
    CartesiaHttpTTSService,
    CartesiaTTSService,
    GenerationConfig,
)
from pipecat.services.tts_service import TextAggregationMode

from tests.clients.pipecat_turns import (
    DELTAS,
    SENTENCES,
    barge_in_and_next_turn,
    is_speech,
    pipeline,
    response,
    three_turns,
    turns_of_nothing_to_speak,
    words_in_time,
)
from tests.clients.serving import Server

WRONG = [
    ({"voice": "nobody"}, "ava"),
    ({"generation_config": GenerationConfig(speed=1.2)}, "speed"),
]


def service(server: Server, **options: Any) -> CartesiaTTSService:
    settings = CartesiaTTSService.Settings(**{"voice": "ava"} | options.pop("settings", {}))
    key = options.pop("api_key", server.api_key or "none")
    url = f"{server.websocket_url}/tts/websocket"
    return CartesiaTTSService(api_key=key, url=url, settings=settings, **options)


@pytest.mark.parametrize("mode", [TextAggregationMode.SENTENCE, TextAggregationMode.TOKEN])
async def test_three_turns(server: Server, mode: TextAggregationMode) -> None:
    async with pipeline(service(server, text_aggregation_mode=mode)) as rig:
        await three_turns(rig)
        assert rig.words == SENTENCES.split() * 3
        contexts = {frame.context_id for frame in rig.of(TTSAudioRawFrame)}
        assert len(contexts) == 3
    await asyncio.to_thread(server.until, "tts_open_turns", 0)


async def test_words_come_in_time(server: Server) -> None:
    async with pipeline(service(server)) as rig:
        await words_in_time(rig)


async def test_a_barge_in_and_the_next_turn(server: Server) -> None:
    async with pipeline(service(server)) as rig:
        await barge_in_and_next_turn(rig, server)


async def test_turns_of_nothing_to_speak_do_not_end_the_service(server: Server) -> None:
    async with pipeline(service(server)) as rig:
        await turns_of_nothing_to_speak(rig)


async def test_over_http(server: Server) -> None:
    async with aiohttp.ClientSession() as session:
        speaker = CartesiaHttpTTSService(
            api_key="none", base_url=server.url, aiohttp_session=session,
            settings=CartesiaHttpTTSService.Settings(voice="ava"),
        )  # fmt: skip
        async with pipeline(speaker) as rig:
            await three_turns(rig)


async def test_the_key_is_checked(keyed_server: Server) -> None:
    async with pipeline(service(keyed_server)) as rig:
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: rig.of(TTSStoppedFrame))
        assert is_speech(rig.seconds)
    async with pipeline(service(keyed_server, api_key="wrong")) as rig:
        await rig.until(lambda: rig.of(ErrorFrame))
        assert "401" in rig.of(ErrorFrame)[0].error


@pytest.mark.parametrize(("wrong", "told"), WRONG)
async def test_what_cannot_be_had_is_told(server: Server, wrong: dict[str, Any], told: str) -> None:
    async with pipeline(service(server, settings=wrong)) as rig:
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: rig.of(ErrorFrame))
        error = rig.of(ErrorFrame)[0].error
        assert "'status_code': 400" in error and told in error


async def test_what_cannot_be_had_over_http_is_told(server: Server) -> None:
    for wrong, told in WRONG:
        settings = CartesiaHttpTTSService.Settings(**{"voice": "ava"} | wrong)
        speaker = CartesiaHttpTTSService(api_key="none", base_url=server.url, settings=settings)
        async with pipeline(speaker) as rig:
            await rig.send(*response(*DELTAS))
            await rig.until(lambda: rig.of(ErrorFrame))
            error = rig.of(ErrorFrame)[0].error
            assert "status 400" in error and told in error


async def test_a_busy_server_says_so(busy_server: Server) -> None:
    async with pipeline(service(busy_server)) as rig:
        await rig.until(lambda: rig.of(ErrorFrame))
        assert "HTTP 429" in rig.of(ErrorFrame)[0].error
