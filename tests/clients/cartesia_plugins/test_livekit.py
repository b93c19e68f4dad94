"""LiveKit's own Cartesia plugin, told nothing but another address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from livekit.agents import APIError, APIStatusError
from livekit.agents.types import USERDATA_TIMED_TRANSCRIPT
from livekit.plugins import cartesia
from livekit_turns import LONG, ONCE, TEXT, is_speech, say, seconds
from serving import Server

MakeTts = Callable[..., cartesia.TTS]


@pytest.fixture
async def make(server: Server) -> AsyncIterator[MakeTts]:
    """Plugins for a server; all closed at the end."""
    made: list[cartesia.TTS] = []
    async with aiohttp.ClientSession() as session:

        def one(of: Server = server, **options: Any) -> cartesia.TTS:
            asked = {"voice": "ava", "api_key": of.api_key or "none"} | options
            made.append(cartesia.TTS(base_url=of.url, http_session=session, **asked))
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


async def test_the_text_comes_with_the_sound(make: MakeTts) -> None:
    """Every word as it was written, with its spaces: the plugin finds each in what it sent."""
    events = await say(make())
    timed = [
        word for event in events for word in event.frame.userdata.get(USERDATA_TIMED_TRANSCRIPT, [])
    ]
    assert "".join(timed).strip() == TEXT and len(timed) == len(TEXT.split())
    starts = [word.start_time for word in timed]
    assert starts == sorted(starts)
    assert 0.7 < starts[-1] / seconds(events) < 1


async def test_a_barge_in_and_the_next_turn(make: MakeTts, server: Server) -> None:
    """The plugin says nothing, it closes the socket."""
    closed = 'tts_turns_total{reason="closed"}'
    before = server.value(closed)
    tts = make()
    async with tts.stream(conn_options=ONCE) as stream:
        stream.push_text(LONG + " ")
        await asyncio.wait_for(anext(aiter(stream)), 60)
    assert is_speech(await say(tts))
    await asyncio.to_thread(server.until, closed, before + 1)
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


async def test_the_plugin_s_own_voice_is_the_default(make: MakeTts) -> None:
    assert is_speech(await say(make(voice=cartesia.tts.TTSDefaultVoiceId)))


async def test_the_key_is_checked(make: MakeTts, keyed_server: Server) -> None:
    assert is_speech(await say(make(keyed_server)))
    wrong = make(keyed_server, api_key="wrong")
    with pytest.raises(APIStatusError) as caught:
        await say(wrong)
    assert caught.value.status_code == 401
    with pytest.raises(APIStatusError) as caught:
        async with wrong.synthesize(TEXT, conn_options=ONCE) as stream:
            [event async for event in stream]
    assert caught.value.status_code == 401


@pytest.mark.parametrize(
    ("wrong", "told"), [({"voice": "nobody"}, "ava"), ({"speed": 1.2}, "speed")]
)
async def test_what_cannot_be_had_is_an_error(
    make: MakeTts, wrong: dict[str, Any], told: str
) -> None:
    with pytest.raises(APIError, match=told):
        await say(make(**wrong))
    with pytest.raises(APIStatusError) as caught:
        async with make(**wrong).synthesize(TEXT, conn_options=ONCE) as stream:
            [event async for event in stream]
    assert caught.value.status_code == 400


async def test_a_busy_server_says_so(make: MakeTts, busy_server: Server) -> None:
    with pytest.raises(APIStatusError) as caught:
        await say(make(busy_server))
    assert caught.value.status_code == 429
