"""LiveKit's own OpenAI plugin: what is its own, beside plugins/test_livekit.py. It speaks whole
sentences over HTTP; the framework's `StreamAdapter` makes them of deltas, as an agent does."""

from __future__ import annotations

from typing import Any

import pytest
from livekit.agents import APIError
from livekit.agents.tts import StreamAdapter
from livekit.plugins import openai

from tests.clients.livekit_rig import DELTAS, TEXT, read, say
from tests.clients.livekit_turns import (
    LONG,
    Make,
    Plugin,
    fixtures,
    is_speech,
    refusal,
    three_turns,
)
from tests.clients.serving import Server


def tts(server: Server, session: Any, **options: Any) -> openai.TTS:
    asked = {"voice": "ava", "api_key": server.api_key or "none"} | options
    return openai.TTS(base_url=f"{server.url}/v1", **asked)


PLUGINS = [
    Plugin(
        "openai",
        tts,
        default={"voice": openai.tts.DEFAULT_VOICE},
        ways=[{"response_format": "pcm"}],
        plain={"response_format": "pcm"},
        cut_off_as="closed",
        endless=LONG.replace(". ", ", ") * 2,  # one sentence, longer than the longest lead
    )
]

plugin, make = fixtures(PLUGINS)


@pytest.mark.parametrize("model", ["gpt-4o-mini-tts", "tts-1"])
@pytest.mark.parametrize("response_format", ["mp3", "pcm", "wav", "opus", "aac", "flac"])
async def test_events_and_bodies_in_every_format(
    make: Make, model: str, response_format: str
) -> None:
    assert is_speech(await read(make(model=model, response_format=response_format), TEXT))


async def test_three_turns_of_deltas(make: Make) -> None:
    adapted = StreamAdapter(tts=make(response_format="pcm"))
    await three_turns(adapted, *DELTAS)
    await adapted.aclose()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [({"voice": "nobody"}, "ava"), ({"response_format": "x"}, "format")],
)
async def test_what_cannot_be_had_is_an_error(make: Make, wrong: dict[str, Any], told: str) -> None:
    error = await refusal(read(make(**wrong), TEXT))
    assert error.status_code == 400 and not error.retryable and told in str(error)
    with pytest.raises(APIError):
        await say(StreamAdapter(tts=make(**wrong)))


async def test_a_speed_is_taken(make: Make) -> None:
    assert is_speech(await read(make(speed=1.2), TEXT))
