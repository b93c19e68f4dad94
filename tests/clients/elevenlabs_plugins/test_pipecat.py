"""Pipecat's own ElevenLabs services, told nothing but another address."""

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
from pipecat.services.elevenlabs.tts import ElevenLabsHttpTTSService, ElevenLabsTTSService
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


def service(server: Server, **options: Any) -> ElevenLabsTTSService:
    settings = ElevenLabsTTSService.Settings(voice=options.pop("voice", "ava"))
    key = options.pop("api_key", server.api_key or "none")
    return ElevenLabsTTSService(api_key=key, url=server.websocket_url, settings=settings, **options)


@pytest.mark.parametrize("mode", [TextAggregationMode.SENTENCE, TextAggregationMode.TOKEN])
async def test_three_turns(server: Server, mode: TextAggregationMode) -> None:
    async with pipeline(service(server, text_aggregation_mode=mode)) as rig:
        await three_turns(rig)
        assert rig.words == SENTENCES.split() * 3
        contexts = {frame.context_id for frame in rig.of(TTSAudioRawFrame)}
        assert len(contexts) == 3
    await asyncio.to_thread(server.until, "tts_open_turns", 0)


async def test_words_come_in_time(server: Server) -> None:
    """Word times add up over the messages of a context."""
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
        speaker = ElevenLabsHttpTTSService(
            api_key="none", base_url=server.url, aiohttp_session=session,
            settings=ElevenLabsHttpTTSService.Settings(voice="ava"),
        )  # fmt: skip
        async with pipeline(speaker) as rig:
            await rig.send(*response(*DELTAS))
            await rig.until(lambda: rig.of(TTSStoppedFrame))
            assert is_speech(rig.seconds) and rig.words == SENTENCES.split()
            assert not rig.of(ErrorFrame)


async def test_the_key_is_checked(keyed_server: Server) -> None:
    async with pipeline(service(keyed_server)) as rig:
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: rig.of(TTSStoppedFrame))
        assert is_speech(rig.seconds)
    async with pipeline(service(keyed_server, api_key="wrong")) as rig:
        await rig.until(lambda: rig.of(ErrorFrame))
        assert "401" in rig.of(ErrorFrame)[0].error
