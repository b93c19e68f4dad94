"""LiveKit's own OpenAI plugin, told nothing but another address. It speaks whole sentences over
HTTP; the framework's `StreamAdapter` makes them of deltas, as an agent does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from livekit.agents import APIError, APIStatusError
from livekit.agents.tts import StreamAdapter
from livekit.plugins import openai
from livekit_turns import LONG, ONCE, TEXT, is_speech, say, seconds
from serving import Server

ENDLESS = LONG.replace(". ", ", ") * 2  # one sentence, longer than the longest lead
MakeTts = Callable[..., openai.TTS]


@pytest.fixture
async def make(server: Server) -> AsyncIterator[MakeTts]:
    """Plugins for a server; all closed at the end."""
    made: list[openai.TTS] = []

    def one(of: Server = server, **options: Any) -> openai.TTS:
        asked = {"voice": "ava", "api_key": of.api_key or "none"} | options
        made.append(openai.TTS(base_url=f"{of.url}/v1", **asked))
        return made[-1]

    yield one
    for each in made:
        await each.aclose()


async def whole(tts: openai.TTS, text: str = TEXT) -> list[Any]:
    async with tts.synthesize(text, conn_options=ONCE) as stream:
        return [event async for event in stream]


@pytest.mark.parametrize("model", ["gpt-4o-mini-tts", "tts-1"])
@pytest.mark.parametrize("response_format", ["mp3", "pcm", "wav", "opus", "aac", "flac"])
async def test_events_and_bodies_in_every_format(
    make: MakeTts, model: str, response_format: str
) -> None:
    assert is_speech(await whole(make(model=model, response_format=response_format)))


async def test_three_turns_of_deltas(make: MakeTts) -> None:
    tts = StreamAdapter(tts=make(response_format="pcm"))
    for _ in range(3):
        events = await say(tts)
        assert is_speech(events)
        assert len({event.request_id for event in events}) == 1 and events[-1].is_final
    await tts.aclose()


async def test_a_barge_in_and_the_next_turn(make: MakeTts, server: Server) -> None:
    closed = 'tts_turns_total{reason="closed"}'
    before = server.value(closed)
    tts = make(response_format="pcm")
    async with tts.synthesize(ENDLESS, conn_options=ONCE) as stream:
        await asyncio.wait_for(anext(aiter(stream)), 60)
    assert is_speech(await whole(tts))
    await asyncio.to_thread(server.until, closed, before + 1)
    await asyncio.to_thread(server.until, "tts_open_turns", 0)


async def test_streams_in_parallel(make: MakeTts) -> None:
    tts = make(response_format="pcm")
    short, long = await asyncio.gather(whole(tts, "Yes."), whole(tts))
    assert 0 < 2 * seconds(short) < seconds(long)


async def test_text_with_nothing_to_speak(make: MakeTts) -> None:
    assert 0 < seconds(await whole(make(), "…")) < 0.5


async def test_the_plugin_s_own_voice_is_the_default(make: MakeTts) -> None:
    assert is_speech(await whole(make(voice=openai.tts.DEFAULT_VOICE)))


async def test_the_key_is_checked(make: MakeTts, keyed_server: Server) -> None:
    assert is_speech(await whole(make(keyed_server)))
    with pytest.raises(APIStatusError) as caught:
        await whole(make(keyed_server, api_key="wrong"))
    assert caught.value.status_code == 401


@pytest.mark.parametrize(
    ("wrong", "told"),
    [({"voice": "nobody"}, "ava"), ({"speed": 1.2}, "speed"), ({"response_format": "x"}, "format")],
)
async def test_what_cannot_be_had_is_an_error(
    make: MakeTts, wrong: dict[str, Any], told: str
) -> None:
    with pytest.raises(APIStatusError, match=told) as caught:
        await whole(make(**wrong))
    assert caught.value.status_code == 400 and not caught.value.retryable
    with pytest.raises(APIError):
        await say(StreamAdapter(tts=make(**wrong)))


async def test_a_busy_server_says_so(make: MakeTts, busy_server: Server) -> None:
    with pytest.raises(APIStatusError) as caught:
        await whole(make(busy_server))
    assert caught.value.status_code == 429
