"""LiveKit's own Cartesia plugin, told nothing but another address."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from livekit.agents import APIError
from livekit.plugins import cartesia

from tests.clients import livekit_turns
from tests.clients.livekit_turns import TEXT, all_closed, is_speech, read, refusal, say
from tests.clients.serving import Server

MakeTts = Callable[..., cartesia.TTS]


@pytest.fixture
async def make(server: Server) -> AsyncIterator[MakeTts]:
    """Plugins for a server."""
    async with aiohttp.ClientSession() as session:

        def one(of: Server = server, **options: Any) -> cartesia.TTS:
            asked = {"voice": "ava", "api_key": of.api_key or "none"} | options
            return cartesia.TTS(base_url=of.url, http_session=session, **asked)

        async with all_closed(one) as found:
            yield found


@pytest.mark.parametrize("sample_rate", [24_000, 16_000])
async def test_three_turns_over_one_socket(make: MakeTts, sample_rate: int) -> None:
    await livekit_turns.three_turns(make(sample_rate=sample_rate))


async def test_the_text_comes_with_the_sound(make: MakeTts) -> None:
    """The plugin finds each word in what it sent."""
    await livekit_turns.words_in_time(make())


async def test_a_barge_in_and_the_next_turn(make: MakeTts, server: Server) -> None:
    """The plugin says nothing, it closes the socket."""
    await livekit_turns.barge_in_and_next_turn(make(), server, reason="closed")


async def test_streams_in_parallel(make: MakeTts) -> None:
    await livekit_turns.streams_in_parallel(make())


async def test_a_text_that_is_whole(make: MakeTts) -> None:
    assert is_speech(await read(make(), TEXT))


async def test_text_with_nothing_to_speak(make: MakeTts) -> None:
    await livekit_turns.nothing_to_speak(make())


async def test_the_plugin_s_own_voice_is_the_default(make: MakeTts) -> None:
    assert is_speech(await say(make(voice=cartesia.tts.TTSDefaultVoiceId)))


async def test_the_key_is_checked(make: MakeTts, keyed_server: Server) -> None:
    await livekit_turns.key_is_checked(make, keyed_server)
    error = await refusal(read(make(keyed_server, api_key="wrong"), TEXT))
    assert error.status_code == 401


@pytest.mark.parametrize(
    ("wrong", "told"), [({"voice": "nobody"}, "ava"), ({"speed": 1.2}, "speed")]
)
async def test_what_cannot_be_had_is_an_error(
    make: MakeTts, wrong: dict[str, Any], told: str
) -> None:
    with pytest.raises(APIError, match=told):
        await say(make(**wrong))
    assert (await refusal(read(make(**wrong), TEXT))).status_code == 400


async def test_a_busy_server_says_so(make: MakeTts, busy_server: Server) -> None:
    await livekit_turns.busy_server_says_so(make(busy_server))
