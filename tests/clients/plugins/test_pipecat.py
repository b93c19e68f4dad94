"""What every speech service for Pipecat must stand, whoever made it: conversations with the
services of this environment, told nothing but another address. `REALTIME_TTS_CLIENT` names their
folder."""

from __future__ import annotations

import asyncio
import os
from importlib import import_module
from typing import Any

import aiohttp
import pytest
from pipecat.frames.frames import (
    ErrorFrame,
    InterruptionFrame,
    TTSAudioRawFrame,
    TTSStoppedFrame,
    TTSTextFrame,
)

from tests.clients.pipecat_rig import response
from tests.clients.pipecat_turns import (
    DELTAS,
    SENTENCES,
    Service,
    is_speech,
    pipeline,
    three_turns,
)
from tests.clients.serving import Server

CLIENT = os.environ["REALTIME_TTS_CLIENT"]
SERVICES: list[Service] = import_module(f"tests.clients.{CLIENT}.test_pipecat").SERVICES
WAYS = [
    pytest.param(service, way, id=f"{service.name}-{'-'.join(map(str, way.values()))}")
    for service in SERVICES
    for way in service.ways
]


@pytest.fixture(params=SERVICES, ids=lambda service: service.name)
def service(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.mark.parametrize(("service", "way"), WAYS, indirect=["service"])
async def test_three_turns(server: Server, service: Service, way: dict[str, Any]) -> None:
    async with pipeline(service.make(server, **way)) as rig:
        await three_turns(rig)
        if service.words:
            assert rig.words == SENTENCES.split() * 3
        if service.contexts:
            assert len({frame.context_id for frame in rig.of(TTSAudioRawFrame)}) == 3
    await asyncio.to_thread(server.until, "tts_open_turns", 0)


async def test_words_come_in_time(server: Server, service: Service) -> None:
    """Word times add up over the messages of a context."""
    if not service.timed:
        pytest.skip("this service tells nobody when a word is heard")
    async with pipeline(service.make(server)) as rig:
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: rig.of(TTSStoppedFrame))
        times = [frame.pts for frame in rig.of(TTSTextFrame)]
        assert len(times) == len(SENTENCES.split()) and times == sorted(times)
        spoken = (times[-1] - times[0]) / 1e9
        assert 0.5 * rig.seconds < spoken < rig.seconds


async def test_a_barge_in_and_the_next_turn(server: Server, service: Service) -> None:
    series = f'tts_turns_total{{reason="{service.cut_off_as}"}}'
    async with pipeline(service.make(server)) as rig:
        counted = server.value(series)
        await rig.send(*response(service.endless))
        await rig.until(lambda: rig.of(TTSAudioRawFrame))
        await rig.send(InterruptionFrame())
        await asyncio.to_thread(server.until, series, counted + 1)
        before = len(rig.of(TTSStoppedFrame))
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: len(rig.of(TTSStoppedFrame)) > before)
        assert is_speech(rig.seconds_of_the_last)
        assert not rig.of(ErrorFrame)


async def test_turns_of_nothing_to_speak_do_not_end_the_service(
    server: Server, service: Service
) -> None:
    """After three turns without sound the framework would give the service up."""
    if not service.reconnects:
        pytest.skip("the framework does not give up a service over HTTP")
    async with pipeline(service.make(server)) as rig:
        for turn in range(1, 6):
            await rig.send(*response("…"))
            await rig.until_stopped(turn)
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: is_speech(rig.seconds))


async def test_a_turn_over_http(server: Server, service: Service) -> None:
    if service.http is None:
        pytest.skip("this service has no second one over HTTP")
    async with (
        aiohttp.ClientSession() as session,
        pipeline(service.http(server, session)) as rig,
    ):
        await rig.send(*response(*DELTAS))
        await rig.until(lambda: rig.of(TTSStoppedFrame) and is_speech(rig.seconds))
        if service.words:
            assert rig.words == SENTENCES.split()
        assert not rig.of(ErrorFrame)


async def test_the_key_is_checked(keyed_server: Server, service: Service) -> None:
    async with pipeline(service.make(keyed_server)) as rig:
        await rig.one_turn()
    async with pipeline(service.make(keyed_server, api_key="wrong")) as rig:
        await rig.send(*response(*DELTAS))
        assert "401" in await rig.first_error()
