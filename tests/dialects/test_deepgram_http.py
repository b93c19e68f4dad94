"""Deepgram's API over HTTP: `POST /v1/speak` and `POST /v2/speak`."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from realtime_tts.config import ServerConfig
from tests.dialects.tones import FRAME, TENTH
from tests.server.asking import answer_to
from tests.server.speaking import speaking

TEXT = "Hello there, how are you?"
PIPECAT: dict[str, Any] = {
    "model": "aura-2-helena-en",
    "encoding": "linear16",
    "sample_rate": 24_000,
    "container": "none",
}


async def post(
    server: Any, path: str = "/v1/speak", text: Any = TEXT, headers: Any = None, **query: Any
) -> httpx2.Response:
    return await answer_to(server, "POST", path, json={"text": text}, params=query, headers=headers)


@pytest.mark.parametrize("path", ["/v1/speak", "/v2/speak"])
async def test_what_pipecat_and_livekit_send(path: str) -> None:
    async with speaking() as server:
        response = await post(server, path, **PIPECAT, mip_opt_out="false")
        assert response.status_code == 200
        assert response.headers["content-type"] == "audio/pcm"
        assert len(response.content) == len(TEXT) * FRAME
        headers = response.headers
        assert headers["dg-model-name"] == "aura-2-helena-en" and headers["dg-model-uuid"]
        assert headers["dg-char-count"] == str(len(TEXT))
        assert headers["dg-request-id"] == headers["x-request-id"]
        await server.settled()


@pytest.mark.parametrize(
    ("query", "media_type", "begins"),
    [
        ({}, "audio/mpeg", b"\xff"),
        ({"encoding": "linear16"}, "audio/wav", b"RIFF"),
        ({"encoding": "linear16", "container": "wav"}, "audio/wav", b"RIFF"),
        ({"encoding": "mulaw"}, "audio/wav", b"RIFF"),
        ({"encoding": "mulaw", "container": "none"}, "audio/basic", b""),
        ({"encoding": "alaw", "container": "wav", "sample_rate": 16000}, "audio/wav", b"RIFF"),
        ({"encoding": "mp3", "bit_rate": 48000, "sample_rate": 22050}, "audio/mpeg", b"\xff"),
        ({"encoding": "mp3", "container": "none"}, "audio/mpeg", b"\xff"),
        ({"encoding": "opus", "container": "ogg", "bit_rate": 12000}, "audio/ogg", b"OggS"),
        ({"encoding": "opus"}, "audio/ogg", b"OggS"),
        ({"encoding": "FLAC", "sample_rate": 48000, "bit_rate": 5}, "audio/flac", b"fLaC"),
        ({"encoding": "aac"}, "audio/aac", b"\xff"),
    ],
)
async def test_formats(query: dict[str, Any], media_type: str, begins: bytes) -> None:
    async with speaking() as server:
        response = await post(server, **query)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == media_type
        assert response.content.startswith(begins) and len(response.content) > 500


async def test_nothing_to_speak_is_a_little_silence() -> None:
    async with speaking() as server:
        assert (await post(server, text="…", **PIPECAT)).content == TENTH


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"model": "nobody"}, "alto"),
        ({"encoding": "pcm99"}, "linear16"),
        ({"encoding": "mp3", "container": "wav"}, "wav"),
        ({"encoding": "linear16", "container": "avi"}, "avi"),
        ({"encoding": "linear16", "sample_rate": 7}, "7"),
        ({"encoding": "mp3", "bit_rate": 3}, "3"),
        ({"bit_rate": "much"}, "whole number"),
        ({"speed": "quick"}, "`speed` cannot be 'quick'"),
        ({"speed": "nan"}, "`speed` cannot be 'nan'"),
        ({"bit_rate": "0" * 5_000}, "whole number"),
        ({"callback": "http://127.0.0.1/"}, "callback"),
        ({"text": ""}, "text"),
        ({"text": None}, "text"),
        ({"text": ["a"]}, "text"),
    ],
)
async def test_what_is_wrong_has_a_status(query: dict[str, Any], names: str) -> None:
    async with speaking() as server:
        response = await post(server, **query)
        assert response.status_code == 400
        body = response.json()
        assert body["err_code"] == "Bad Request" and names in body["err_msg"]
        assert body["request_id"] == response.headers["dg-request-id"]
        assert names in response.headers["dg-error"]
        assert server.running.front.sessions == 0


async def test_an_odd_model_makes_no_header() -> None:
    async with speaking() as server:
        response = await post(server, **PIPECAT | {"model": "aura-2-\u65e5 \r\0x-\x7fevil-en"})
        assert response.status_code == 200
        assert response.headers["dg-model-name"] == "aura-2-? ?x-?evil-en"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b"Hello."])
async def test_bodies_that_are_none(body: bytes) -> None:
    async with speaking() as server:
        response = await answer_to(server, "POST", "/v1/speak", content=body)
        assert response.status_code == 400 and response.json()["err_msg"]


@pytest.mark.parametrize("size", [17_000, 400_000])
async def test_too_much_text_is_413(size: int) -> None:
    async with speaking() as server:
        response = await post(server, text="a" * size)
        assert response.status_code == 413
        assert response.json()["err_code"] == "PAYLOAD_TOO_LARGE"


async def test_another_method_is_told_of_both_ways() -> None:
    async with speaking() as server:
        response = await answer_to(server, "GET", "/v2/speak")
        assert response.status_code == 405 and response.headers["allow"] == "POST"
        assert "WebSocket" in response.json()["err_msg"]


async def test_the_key_guards_it() -> None:
    key = "sesame-open-12345"
    async with speaking(ServerConfig(port=0, api_keys=(key,))) as server:
        denied = await post(server)
        assert denied.status_code == 401 and denied.json()["err_code"] == "INVALID_AUTH"
        assert denied.headers["dg-error"] and denied.headers["dg-request-id"]
        for kind in ("Token", "Bearer"):
            response = await post(server, headers={"Authorization": f"{kind} {key}"}, **PIPECAT)
            assert response.status_code == 200
        elsewhere = await post(server, headers={"Origin": "http://elsewhere.example"})
        assert elsewhere.json()["err_code"] == "INSUFFICIENT_PERMISSIONS"
