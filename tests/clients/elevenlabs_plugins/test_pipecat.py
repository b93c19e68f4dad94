"""Pipecat's own ElevenLabs services, told nothing but another address."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
from pipecat.frames.frames import (
    InterruptionFrame,
    TTSAudioRawFrame,
    TTSStoppedFrame,
    TTSTextFrame,
)
from pipecat.services.elevenlabs.tts import ElevenLabsHttpTTSService, ElevenLabsTTSService
from pipecat.services.tts_service import TextAggregationMode
from pipecat_rig import pipeline, response
from serving import Server
from speaking import lasts

SENTENCES = "Your table is free. Come at eight, and bring your friends."
DELTAS = ("Your ta", "ble is fr", "ee. Come at e", "ight, and bring your fri", "ends.")
LONG = "The museum is open until six. " * 12


def service(server: Server, **options: Any) -> ElevenLabsTTSService:
    settings = ElevenLabsTTSService.Settings(voice=options.pop("voice", "ava"))
    key = options.pop("api_key", server.api_key or "none")
    return ElevenLabsTTSService(api_key=key, url=server.websocket_url, settings=settings, **options)


@pytest.mark.parametrize("mode", [TextAggregationMode.SENTENCE, TextAggregationMode.TOKEN])
async def test_three_turns(server: Server, mode: TextAggregationMode) -> None:
    async with pipeline(service(server, text_aggregation_mode=mode)) as rig:
        for turn in range(1, 4):
            await rig.send(*response(*DELTAS))
            await rig.until(lambda turn=turn: len(rig.of(TTSStoppedFrame)) == turn)
            assert lasts(rig.seconds() / turn, SENTENCES)
        assert rig.words == SENTENCES.split() * 3
        assert not rig.errors
        assert len(rig.contexts()) == 3
    await asyncio.to_thread(server.until, "tts_open_turns", 0)


async def test_words_come_in_time(server: Server) -> None:
    """Word times add up over the messages of a context."""
    async with pipeline(service(server)) as rig:
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: rig.of(TTSStoppedFrame))
        times = [frame.pts for frame in rig.of(TTSTextFrame)]
        assert len(times) == len(SENTENCES.split()) and times == sorted(times)
        spoken = (times[-1] - times[0]) / 1e9
        assert 0.5 * rig.seconds() < spoken < rig.seconds()


async def test_a_barge_in_and_the_next_turn(server: Server) -> None:
    interrupted = server.value('tts_turns_total{reason="interrupted"}')
    async with pipeline(service(server)) as rig:
        await rig.send(*response(LONG))
        await rig.until(lambda: rig.of(TTSAudioRawFrame))
        await rig.send(InterruptionFrame())
        await asyncio.to_thread(
            server.until, 'tts_turns_total{reason="interrupted"}', interrupted + 1
        )
        before = len(rig.of(TTSStoppedFrame))
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: len(rig.of(TTSStoppedFrame)) > before)
        last = rig.of(TTSAudioRawFrame)[-1].context_id
        assert lasts(rig.seconds(last), SENTENCES)
        assert not rig.errors


async def test_turns_of_nothing_to_speak_do_not_end_the_service(server: Server) -> None:
    """After three turns without sound the framework would give the service up."""
    async with pipeline(service(server)) as rig:
        for turn in range(1, 6):
            await rig.send(*response("…"))
            await rig.until(lambda turn=turn: len(rig.of(TTSStoppedFrame)) >= turn)
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: lasts(rig.seconds(), SENTENCES))
        assert not rig.errors


async def test_over_http(server: Server) -> None:
    async with aiohttp.ClientSession() as session:
        speaker = ElevenLabsHttpTTSService(
            api_key="none", base_url=server.url, aiohttp_session=session,
            settings=ElevenLabsHttpTTSService.Settings(voice="ava"),
        )  # fmt: skip
        async with pipeline(speaker) as rig:
            await rig.send(*response(*DELTAS))
            await rig.until(lambda: rig.of(TTSStoppedFrame))
            assert lasts(rig.seconds(), SENTENCES) and rig.words == SENTENCES.split()
            assert not rig.errors


async def test_the_key_is_checked(keyed_server: Server) -> None:
    async with pipeline(service(keyed_server)) as rig:
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: rig.of(TTSStoppedFrame))
        assert lasts(rig.seconds(), SENTENCES)
    async with pipeline(service(keyed_server, api_key="wrong")) as rig:
        await rig.until(lambda: rig.errors)
        assert "401" in rig.errors[0].error
