"""OpenAI's Python client in its newest version, against the demo voice."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from collections.abc import Callable

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from serving import Server

TEXT = "The museum is open until six."
LONG = " ".join([TEXT] * 12)
BEGINNINGS = {
    "wav": b"RIFF\xff\xff\xff\xffWAVEfmt ",
    "mp3": b"\xff",
    "opus": b"OggS",
    "flac": b"fLaC",
    "aac": b"\xff",
}

Ask = Callable[..., bytes]


def client(server: Server, **options: object) -> OpenAI:
    settings: dict = {"api_key": server.api_key or "none", "max_retries": 0, **options}
    return OpenAI(base_url=f"{server.url}/v1", **settings)


def asynchronous(server: Server) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


def speech(api: OpenAI, text: str = TEXT, **options: object) -> bytes:
    asked: dict = {"model": "tts-1", "voice": "nova", "response_format": "pcm", **options}
    return api.audio.speech.create(input=text, **asked).content


def test_speech_streams_while_it_is_made(server: Server) -> None:
    with client(server) as api:
        asked = {"model": "tts-1", "voice": "nova", "response_format": "pcm"}
        with api.audio.speech.with_streaming_response.create(input=TEXT, **asked) as answer:
            assert answer.headers["content-type"].startswith("audio/")
            assert answer.headers["x-request-id"]
            pieces = list(answer.iter_bytes(4_096))
    assert len(pieces) > 5
    samples = b"".join(pieces)
    assert 1.0 < len(samples) / 48_000 < 6.0 and any(samples)
