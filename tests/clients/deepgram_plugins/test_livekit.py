"""LiveKit's own Deepgram plugins, Aura's and Flux', told nothing but another address."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import aiohttp
import pytest
from livekit.agents import APIError
from livekit.plugins import deepgram

from tests.clients import livekit_turns
from tests.clients.livekit_turns import TEXT, all_closed, is_speech, read, refusal, say
from tests.clients.serving import Server

Speaker: TypeAlias = deepgram.TTS | deepgram.TTSv2
MakeTts = Callable[..., Speaker]


@pytest.fixture(params=["v1", "v2"])
async def make(request: pytest.FixtureRequest, server: Server) -> AsyncIterator[MakeTts]:
    """Plugins for a server."""
    kind: Any = deepgram.TTS if request.param == "v1" else deepgram.TTSv2
    model = "aura-2-ava-en" if request.param == "v1" else "flux-ava-en"
    async with aiohttp.ClientSession() as session:

        def one(of: Server = server, **options: Any) -> Speaker:
            asked = {"model": model, "api_key": of.api_key or "none"} | options
            speaker: Speaker = kind(
                base_url=f"{of.url}/{request.param}/speak", http_session=session, **asked
            )
            return speaker

        async with all_closed(one) as found:
            yield found


@pytest.mark.parametrize("sample_rate", [24_000, 16_000])
async def test_three_turns_over_one_socket(make: MakeTts, sample_rate: int) -> None:
    await livekit_turns.three_turns(make(sample_rate=sample_rate))


async def test_a_barge_in_and_the_next_turn(make: MakeTts, server: Server) -> None:
    """The plugin says nothing and leaves the socket; it closes it when it needs the next one."""
    await livekit_turns.barge_in_and_next_turn(make(), server, reason="closed")


async def test_streams_in_parallel(make: MakeTts) -> None:
    await livekit_turns.streams_in_parallel(make())


async def test_a_text_that_is_whole(make: MakeTts) -> None:
    assert is_speech(await read(make(), TEXT))


async def test_text_with_nothing_to_speak(make: MakeTts) -> None:
    await livekit_turns.nothing_to_speak(make())


async def test_the_default_voice(make: MakeTts) -> None:
    assert is_speech(await say(make(model="aura-2-andromeda-en")))


async def test_the_key_is_checked(make: MakeTts, keyed_server: Server) -> None:
    await livekit_turns.key_is_checked(make, keyed_server)


@pytest.mark.parametrize("wrong", [{"model": "nobody"}, {"speed": 1.2}])
async def test_what_cannot_be_had_is_an_error(make: MakeTts, wrong: dict[str, Any]) -> None:
    assert (await refusal(say(make(**wrong)))).status_code == 400
    with pytest.raises(APIError):
        await read(make(**wrong), TEXT)


async def test_a_busy_server_says_so(make: MakeTts, busy_server: Server) -> None:
    await livekit_turns.busy_server_says_so(make(busy_server))
