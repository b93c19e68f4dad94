"""LiveKit's own ElevenLabs plugin, told nothing but another address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from livekit.agents import APIError, APIStatusError
from livekit.agents.types import USERDATA_TIMED_TRANSCRIPT
from livekit.plugins import elevenlabs
from livekit_turns import LONG, ONCE, TEXT, is_speech, say, seconds
from serving import Server

MakeTts = Callable[..., elevenlabs.TTS]


@pytest.fixture
async def make(server: Server) -> AsyncIterator[MakeTts]:
    """Plugins for a server; all closed at the end."""
    made: list[elevenlabs.TTS] = []
    async with aiohttp.ClientSession() as session:

        def one(of: Server = server, **options: Any) -> elevenlabs.TTS:
            asked = {"voice_id": "ava", "encoding": "pcm_24000"} | options
            asked.setdefault("api_key", of.api_key or "none")
            made.append(elevenlabs.TTS(base_url=f"{of.url}/v1", http_session=session, **asked))
            return made[-1]

        yield one
        for each in made:
            await each.aclose()


@pytest.mark.parametrize("encoding", ["pcm_24000", "mp3_22050_32", "mp3_44100_128"])
async def test_three_turns(make: MakeTts, encoding: str) -> None:
    tts = make(encoding=encoding)
    for _ in range(3):
        events = await say(tts)
        assert is_speech(events)
        assert len({event.request_id for event in events}) == 1 and events[-1].is_final


async def test_words_instead_of_sentences(make: MakeTts) -> None:
    events = await say(make(auto_mode=False, chunk_length_schedule=[50]))
    assert is_speech(events)


async def test_the_text_comes_with_the_sound(make: MakeTts) -> None:
    events = await say(make())
    timed = [
        word for event in events for word in event.frame.userdata.get(USERDATA_TIMED_TRANSCRIPT, [])
    ]
    assert "".join(timed).split() == TEXT.split()
    starts = [word.start_time for word in timed]
    assert starts == sorted(starts)
    assert 0.7 < starts[-1] / seconds(events) < 1


async def test_a_barge_in_and_the_next_turn(make: MakeTts, server: Server) -> None:
    interrupted = server.value('tts_turns_total{reason="interrupted"}')
    tts = make()
    async with tts.stream(conn_options=ONCE) as stream:
        stream.push_text(LONG + " ")
        await asyncio.wait_for(anext(aiter(stream)), 60)
    assert is_speech(await say(tts))
    await asyncio.to_thread(server.until, 'tts_turns_total{reason="interrupted"}', interrupted + 1)


async def test_streams_in_parallel_share_a_socket(make: MakeTts, server: Server) -> None:
    tts = make()
    short, long, again = await asyncio.gather(say(tts, ("Yes.",)), say(tts), say(tts, ("Yes.",)))
    assert min(map(seconds, (short, again))) > 0
    assert seconds(long) > 2 * max(map(seconds, (short, again)))


async def test_a_text_that_is_whole(make: MakeTts) -> None:
    for encoding in ("pcm_24000", "mp3_22050_32"):
        async with make(encoding=encoding).synthesize(TEXT, conn_options=ONCE) as stream:
            assert is_speech([event async for event in stream])


async def test_text_with_nothing_to_speak(make: MakeTts) -> None:
    assert 0 < seconds(await say(make(), ("…",))) < 0.5


async def test_the_default_voice_and_the_list_of_voices(make: MakeTts) -> None:
    tts = make(voice_id=elevenlabs.DEFAULT_VOICE_ID)
    assert is_speech(await say(tts))
    assert {"ava", "kal", "ray"} <= {voice.id for voice in await tts.list_voices()}


async def test_the_key_is_checked(make: MakeTts, keyed_server: Server) -> None:
    assert is_speech(await say(make(keyed_server)))
    with pytest.raises(APIStatusError) as caught:
        await say(make(keyed_server, api_key="wrong"))
    assert caught.value.status_code == 401


async def test_what_cannot_be_had_is_an_error(make: MakeTts) -> None:
    with pytest.raises(APIError):
        await say(make(voice_id="nobody"))
    fast = elevenlabs.VoiceSettings(stability=0.5, similarity_boost=0.5, speed=1.2)
    with pytest.raises(APIError):
        await say(make(voice_settings=fast))
    with pytest.raises(APIStatusError) as caught:
        await say(make(model="eleven_v3"))
    assert caught.value.status_code == 404


async def test_a_busy_server_says_so(make: MakeTts, busy_server: Server) -> None:
    with pytest.raises(APIStatusError) as caught:
        await say(make(busy_server))
    assert caught.value.status_code == 429
