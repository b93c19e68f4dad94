"""LiveKit's own ElevenLabs plugin, told nothing but another address."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from livekit.agents import APIError
from livekit.plugins import elevenlabs

from tests.clients import livekit_turns
from tests.clients.livekit_turns import TEXT, all_closed, is_speech, read, refusal, say
from tests.clients.serving import Server

MakeTts = Callable[..., elevenlabs.TTS]


@pytest.fixture
async def make(server: Server) -> AsyncIterator[MakeTts]:
    """Plugins for a server."""
    async with aiohttp.ClientSession() as session:

        def one(of: Server = server, **options: Any) -> elevenlabs.TTS:
            asked = {"voice_id": "ava", "encoding": "pcm_24000"} | options
            asked.setdefault("api_key", of.api_key or "none")
            return elevenlabs.TTS(base_url=f"{of.url}/v1", http_session=session, **asked)

        async with all_closed(one) as found:
            yield found


@pytest.mark.parametrize("encoding", ["pcm_24000", "mp3_22050_32", "mp3_44100_128"])
async def test_three_turns(make: MakeTts, encoding: str) -> None:
    await livekit_turns.three_turns(make(encoding=encoding))


async def test_words_instead_of_sentences(make: MakeTts) -> None:
    assert is_speech(await say(make(auto_mode=False, chunk_length_schedule=[50])))


async def test_the_text_comes_with_the_sound(make: MakeTts) -> None:
    await livekit_turns.words_in_time(make())


async def test_a_barge_in_and_the_next_turn(make: MakeTts, server: Server) -> None:
    await livekit_turns.barge_in_and_next_turn(make(), server, reason="interrupted")


async def test_streams_in_parallel_share_a_socket(make: MakeTts) -> None:
    await livekit_turns.streams_in_parallel(make())


async def test_a_text_that_is_whole(make: MakeTts) -> None:
    for encoding in ("pcm_24000", "mp3_22050_32"):
        assert is_speech(await read(make(encoding=encoding), TEXT))


async def test_text_with_nothing_to_speak(make: MakeTts) -> None:
    await livekit_turns.nothing_to_speak(make())


async def test_the_default_voice_and_the_list_of_voices(make: MakeTts) -> None:
    tts = make(voice_id=elevenlabs.DEFAULT_VOICE_ID)
    assert is_speech(await say(tts))
    assert {"ava", "kal", "ray"} <= {voice.id for voice in await tts.list_voices()}


async def test_the_key_is_checked(make: MakeTts, keyed_server: Server) -> None:
    await livekit_turns.key_is_checked(make, keyed_server)


async def test_what_cannot_be_had_is_an_error(make: MakeTts) -> None:
    with pytest.raises(APIError):
        await say(make(voice_id="nobody"))
    fast = elevenlabs.VoiceSettings(stability=0.5, similarity_boost=0.5, speed=1.2)
    with pytest.raises(APIError):
        await say(make(voice_settings=fast))
    assert (await refusal(say(make(model="eleven_v3")))).status_code == 404


async def test_a_busy_server_says_so(make: MakeTts, busy_server: Server) -> None:
    await livekit_turns.busy_server_says_so(make(busy_server))
