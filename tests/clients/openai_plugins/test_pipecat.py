"""Pipecat's own OpenAI service, told nothing but another address."""

from __future__ import annotations

import asyncio
from typing import Any

from pipecat.frames.frames import ErrorFrame, TTSStoppedFrame
from pipecat.services.openai.tts import OpenAITTSService

from tests.clients.pipecat_turns import (
    DELTAS,
    LONG,
    SENTENCES,
    barge_in_and_next_turn,
    is_speech,
    pipeline,
    response,
    three_turns,
)
from tests.clients.serving import Server

ENDLESS = LONG.replace(". ", ", ") * 2  # one sentence, longer than the longest lead


def service(server: Server, api_key: str | None = None, **settings: Any) -> OpenAITTSService:
    asked = OpenAITTSService.Settings(**{"voice": "nova"} | settings)
    key = api_key or server.api_key or "none"
    return OpenAITTSService(api_key=key, base_url=f"{server.url}/v1", settings=asked)


async def test_three_turns(server: Server) -> None:
    async with pipeline(service(server, instructions="Calmly.")) as rig:
        await three_turns(rig)
        assert rig.words == SENTENCES.split() * 3
    await asyncio.to_thread(server.until, "tts_open_turns", 0)


async def test_a_barge_in_and_the_next_turn(server: Server) -> None:
    async with pipeline(service(server)) as rig:
        await barge_in_and_next_turn(rig, server, ENDLESS, reason="closed")


async def test_the_key_is_checked(keyed_server: Server) -> None:
    async with pipeline(service(keyed_server)) as rig:
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: rig.of(TTSStoppedFrame))
        assert is_speech(rig.seconds)
    async with pipeline(service(keyed_server, api_key="wrong")) as rig:
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: rig.of(ErrorFrame))
        assert "401" in rig.of(ErrorFrame)[0].error


async def test_what_cannot_be_had_is_told(server: Server) -> None:
    async with pipeline(service(server, speed=1.2)) as rig:
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: rig.of(ErrorFrame))
        assert "speed" in rig.of(ErrorFrame)[0].error


async def test_a_busy_server_says_so(busy_server: Server) -> None:
    """OpenAI's client tries again before it does; the framework complains of the silence first."""
    async with pipeline(service(busy_server)) as rig:
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: any("429" in frame.error for frame in rig.of(ErrorFrame)))
