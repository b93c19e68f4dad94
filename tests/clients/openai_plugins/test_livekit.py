"""LiveKit's own OpenAI plugin, told nothing but another address. It speaks whole sentences over
HTTP; the framework's `StreamAdapter` makes them of deltas, as an agent does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from livekit.agents import APIError
from livekit.agents.tts import StreamAdapter
from livekit.plugins import openai

from tests.clients import livekit_turns
from tests.clients.livekit_turns import LONG, TEXT, all_closed, is_speech, read, refusal, say
from tests.clients.serving import Server

ENDLESS = LONG.replace(". ", ", ") * 2  # one sentence, longer than the longest lead
MakeTts = Callable[..., openai.TTS]


@pytest.fixture
async def make(server: Server) -> AsyncIterator[MakeTts]:
    """Plugins for a server."""

    def one(of: Server = server, **options: Any) -> openai.TTS:
        asked = {"voice": "ava", "api_key": of.api_key or "none"} | options
        return openai.TTS(base_url=f"{of.url}/v1", **asked)

    async with all_closed(one) as found:
        yield found


@pytest.mark.parametrize("model", ["gpt-4o-mini-tts", "tts-1"])
@pytest.mark.parametrize("response_format", ["mp3", "pcm", "wav", "opus", "aac", "flac"])
async def test_events_and_bodies_in_every_format(
    make: MakeTts, model: str, response_format: str
) -> None:
    assert is_speech(await read(make(model=model, response_format=response_format), TEXT))


async def test_three_turns_of_deltas(make: MakeTts) -> None:
    tts = StreamAdapter(tts=make(response_format="pcm"))
    await livekit_turns.three_turns(tts)
    await tts.aclose()


async def test_a_barge_in_and_the_next_turn(make: MakeTts, server: Server) -> None:
    tts = make(response_format="pcm")
    await livekit_turns.barge_in_and_next_turn(tts, server, reason="closed", text=ENDLESS)


async def test_streams_in_parallel(make: MakeTts) -> None:
    await livekit_turns.streams_in_parallel(make(response_format="pcm"))


async def test_text_with_nothing_to_speak(make: MakeTts) -> None:
    await livekit_turns.nothing_to_speak(make())


async def test_the_plugin_s_own_voice_is_the_default(make: MakeTts) -> None:
    assert is_speech(await read(make(voice=openai.tts.DEFAULT_VOICE), TEXT))


async def test_the_key_is_checked(make: MakeTts, keyed_server: Server) -> None:
    await livekit_turns.key_is_checked(make, keyed_server)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [({"voice": "nobody"}, "ava"), ({"speed": 1.2}, "speed"), ({"response_format": "x"}, "format")],
)
async def test_what_cannot_be_had_is_an_error(
    make: MakeTts, wrong: dict[str, Any], told: str
) -> None:
    error = await refusal(read(make(**wrong), TEXT))
    assert error.status_code == 400 and not error.retryable and told in str(error)
    with pytest.raises(APIError):
        await say(StreamAdapter(tts=make(**wrong)))


async def test_a_busy_server_says_so(make: MakeTts, busy_server: Server) -> None:
    await livekit_turns.busy_server_says_so(make(busy_server))
