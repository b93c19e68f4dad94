"""LiveKit's own Deepgram plugins, Aura's and Flux', told nothing but another address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from livekit.agents import APIError, APIStatusError
from livekit.plugins import deepgram
from livekit_turns import LONG, ONCE, TEXT, is_speech, say, seconds
from serving import Server

Speaker = deepgram.TTS | deepgram.TTSv2
MakeTts = Callable[..., Speaker]


@pytest.fixture(params=["v1", "v2"])
async def make(request: pytest.FixtureRequest, server: Server) -> AsyncIterator[MakeTts]:
    """Plugins for a server; all closed at the end."""
    made: list[Speaker] = []
    kind: Any = deepgram.TTS if request.param == "v1" else deepgram.TTSv2
    model = "aura-2-ava-en" if request.param == "v1" else "flux-ava-en"
    async with aiohttp.ClientSession() as session:

        def one(of: Server = server, **options: Any) -> Speaker:
            asked = {"model": model, "api_key": of.api_key or "none"} | options
            address = f"{of.url}/{request.param}/speak"
            made.append(kind(base_url=address, http_session=session, **asked))
            return made[-1]

        yield one
        for each in made:
            await each.aclose()


@pytest.mark.parametrize("sample_rate", [24_000, 16_000])
async def test_three_turns_over_one_socket(make: MakeTts, sample_rate: int) -> None:
    tts = make(sample_rate=sample_rate)
    for _ in range(3):
        events = await say(tts)
        assert is_speech(events)
        assert len({event.request_id for event in events}) == 1 and events[-1].is_final


async def test_a_barge_in_and_the_next_turn(make: MakeTts, server: Server) -> None:
    """The plugin says nothing and leaves the socket; it closes it when it needs the next one."""
    tts = make()
    async with tts.stream(conn_options=ONCE) as stream:
        stream.push_text(LONG + " ")
        await asyncio.wait_for(anext(aiter(stream)), 60)
    assert is_speech(await say(tts))
    await asyncio.to_thread(server.until, "tts_open_turns", 0)


async def test_streams_in_parallel(make: MakeTts) -> None:
    tts = make()
    short, long = await asyncio.gather(say(tts, ("Yes.",)), say(tts))
    assert 0 < 2 * seconds(short) < seconds(long)


async def test_a_text_that_is_whole(make: MakeTts) -> None:
    async with make().synthesize(TEXT, conn_options=ONCE) as stream:
        assert is_speech([event async for event in stream])


async def test_text_with_nothing_to_speak(make: MakeTts) -> None:
    assert 0 < seconds(await say(make(), ("…",))) < 0.5


async def test_the_default_voice(make: MakeTts) -> None:
    assert is_speech(await say(make(model="aura-2-andromeda-en")))


async def test_the_key_is_checked(make: MakeTts, keyed_server: Server) -> None:
    assert is_speech(await say(make(keyed_server)))
    with pytest.raises(APIStatusError) as caught:
        await say(make(keyed_server, api_key="wrong"))
    assert caught.value.status_code == 401


@pytest.mark.parametrize("wrong", [{"model": "nobody"}, {"speed": 1.2}])
async def test_what_cannot_be_had_is_an_error(make: MakeTts, wrong: dict[str, Any]) -> None:
    with pytest.raises(APIStatusError) as caught:
        await say(make(**wrong))
    assert caught.value.status_code == 400
    with pytest.raises(APIError):
        async with make(**wrong).synthesize(TEXT, conn_options=ONCE) as stream:
            [event async for event in stream]


async def test_a_busy_server_says_so(make: MakeTts, busy_server: Server) -> None:
    with pytest.raises(APIStatusError) as caught:
        await say(make(busy_server))
    assert caught.value.status_code == 429
