"""OpenAI's Python client against the demo voice."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import math
import ssl
from collections.abc import Iterator
from typing import Any

import av
import openai
import pytest
from openai import AsyncOpenAI, DefaultHttpxClient, OpenAI

from tests.clients.serving import Server

TEXT = "The museum is open until six."
LONG = " ".join([TEXT] * 12)
SETTINGS: dict[str, Any] = {"model": "tts-1", "voice": "nova", "response_format": "pcm"}
SEED = {"seed": 11}
RATE = 24_000

# What a lossy coder may add before and after the sound, in seconds.
PADDING = {"wav": 0.0, "flac": 0.0, "mp3": 0.1, "aac": 0.1, "opus": 0.1}


def client(server: Server, **options: Any) -> OpenAI:
    settings = {"api_key": server.api_key or "none", "max_retries": 0, **options}
    return OpenAI(base_url=f"{server.url}/v1", **settings)


@pytest.fixture
def api(server: Server) -> Iterator[OpenAI]:
    with client(server) as found:
        yield found


def spoken(api: OpenAI, text: str = TEXT, **options: Any) -> bytes:
    settings = SETTINGS | {"extra_body": SEED} | options
    content: bytes = api.audio.speech.create(input=text, **settings).content
    return content


@pytest.fixture(scope="module")
def samples(server: Server) -> bytes:
    """TEXT as PCM."""
    with client(server) as found:
        return spoken(found)


def decoded_seconds(sound: bytes) -> float:
    with av.open(io.BytesIO(sound), "r") as container:
        frames = list(container.decode(audio=0))
    return sum(frame.samples / frame.sample_rate for frame in frames)


def test_speech_streams_while_it_is_made(server: Server, api: OpenAI) -> None:
    asked = SETTINGS | {"extra_body": {"lead_ms": 500}}
    with api.audio.speech.with_streaming_response.create(input=LONG, **asked) as answer:
        assert answer.headers["content-type"].startswith("audio/")
        assert answer.headers["x-request-id"]
        pieces = answer.iter_bytes(4_096)
        assert any(next(pieces) + next(pieces))
        assert server.value("tts_open_turns") == 1, "the first sound came after the last"
    server.until("tts_open_turns", 0)


def test_pcm_is_a_few_seconds_of_sound(samples: bytes) -> None:
    assert 1.0 < len(samples) / 2 / RATE < 6.0
    assert any(samples)


@pytest.mark.parametrize("response_format", PADDING)
def test_every_format_holds_the_same_speech(
    api: OpenAI, samples: bytes, response_format: str
) -> None:
    sound = spoken(api, response_format=response_format)
    longer = decoded_seconds(sound) - len(samples) / 2 / RATE
    assert -0.001 <= longer <= PADDING[response_format] + 0.001


def test_mp3_is_what_comes_when_nothing_is_asked_for(api: OpenAI, samples: bytes) -> None:
    answer = api.audio.speech.create(model="tts-1", voice="nova", input=TEXT, extra_body=SEED)
    assert answer.response.headers["content-type"] == "audio/mpeg"
    assert decoded_seconds(answer.content) == pytest.approx(len(samples) / 2 / RATE, abs=0.2)


def test_events_carry_the_speech_and_what_it_took(api: OpenAI, samples: bytes) -> None:
    body = SEED | {"stream_format": "sse"}  # in the body: the oldest client has no word for it
    streaming = api.audio.speech.with_streaming_response
    with streaming.create(input=TEXT, **SETTINGS, extra_body=body) as answer:
        lines = [line for line in answer.iter_lines() if line]
    events = [json.loads(line.removeprefix("data: ")) for line in lines]
    sound = b"".join(base64.b64decode(event["audio"]) for event in events[:-1])
    assert sound == samples
    assert events[-1]["type"] == "speech.audio.done"
    assert events[-1]["usage"]["output_tokens"] == math.ceil(len(samples) / 2 / RATE / 0.08)


def test_a_wrong_key_is_an_authentication_error(keyed_server: Server) -> None:
    with client(keyed_server) as api:
        assert api.models.list().data[0].owned_by == "realtime-tts"
    with client(keyed_server, api_key="sk-wrong-one") as api:
        with pytest.raises(openai.AuthenticationError) as caught:
            spoken(api)
    assert caught.value.code == "invalid_api_key"


def test_an_unknown_voice_is_told_the_known_ones(api: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="ava, ray") as caught:
        spoken(api, voice="rachel")
    assert (caught.value.param, caught.value.code) == ("voice", "voice_not_found")


def test_a_server_that_is_full_says_when_to_come_back(busy_server: Server) -> None:
    with client(busy_server) as api, pytest.raises(openai.InternalServerError) as caught:
        spoken(api)
    assert caught.value.code == "too_many_sessions"
    assert int(caught.value.response.headers["retry-after"]) >= 1


async def test_three_at_once_speak_as_each_would_alone(server: Server, samples: bytes) -> None:
    async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as api:
        asked = SETTINGS | {"extra_body": SEED}
        create = api.audio.speech.create
        answers = await asyncio.gather(
            create(input=TEXT, **asked),
            create(input="The tide is coming in.", **asked | {"voice": "ash"}),
            create(input=TEXT, **asked | {"response_format": "wav"}),
        )
    first, other, wav = (answer.content for answer in answers)
    assert first == samples and wav[44:] == samples
    assert other != samples and any(other)


def test_who_leaves_in_the_middle_frees_the_place(server: Server, api: OpenAI) -> None:
    closed = 'tts_turns_total{reason="closed"}'
    before = server.value(closed)
    asked = SETTINGS | {"extra_body": {"lead_ms": 500}}
    with api.audio.speech.with_streaming_response.create(input=LONG, **asked) as answer:
        pieces = answer.iter_bytes(1_000)
        next(pieces)
        assert server.value("tts_sessions") == 1
    server.until("tts_sessions", 0)
    server.until("tts_active_turns", 0)
    server.until(closed, before + 1)


def test_tls_with_a_certificate_that_is_trusted_and_without(tls_server: Server) -> None:
    trust = ssl.create_default_context(cafile=tls_server.ca_file)
    with client(tls_server, http_client=DefaultHttpxClient(verify=trust)) as api:
        assert any(spoken(api))
    with client(tls_server) as api, pytest.raises(openai.APIConnectionError):
        spoken(api)
