"""Pages of other origins: what a browser asks for them before it shows them an answer."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from realtime_tts.config import ServerConfig
from tests.server.asking import client_of
from tests.server.speaking import speaking

KEY = "sesame-open-12345"
PAGE = "https://app.example.com"
SPEECH = {"input": "Hello.", "voice": "alto", "response_format": "pcm"}


def config(*origins: str) -> ServerConfig:
    return ServerConfig(port=0, api_keys=(KEY,), allowed_origins=origins)


def http(server: Any, origin: str = PAGE) -> httpx2.AsyncClient:
    return client_of(server, {"origin": origin})


async def preflight(client: httpx2.AsyncClient, method: str, path: str) -> httpx2.Response:
    asked = {
        "access-control-request-method": method,
        "access-control-request-headers": "authorization,content-type",
    }
    return await client.request("OPTIONS", path, headers=asked)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/audio/speech"),
        ("GET", "/v1/voices"),
        ("DELETE", "/v1/voices/anna"),
        ("POST", "/tts/bytes"),
        ("POST", "/v1/text-to-speech/alto"),
        ("POST", "/v1/speak"),
        ("GET", "/client/index.js"),
        ("GET", "/readyz"),
    ],
)
async def test_a_preflight_needs_no_key_and_an_allowed_origin(method: str, path: str) -> None:
    async with speaking(config(PAGE.upper())) as server:
        async with http(server) as page:
            answer = await preflight(page, method, path)
            assert answer.status_code == 200
            assert answer.headers["access-control-allow-origin"] == PAGE
            assert method in answer.headers["access-control-allow-methods"]
            allowed = answer.headers["access-control-allow-headers"].lower()
            assert "authorization" in allowed and "content-type" in allowed
        async with http(server, "https://evil.example") as page:
            answer = await preflight(page, method, path)
            assert answer.status_code == 400
            assert "access-control-allow-origin" not in answer.headers


async def test_an_allowed_page_may_read_speech_its_headers_and_why_it_was_refused() -> None:
    async with speaking(config(PAGE)) as server, http(server) as page:
        answer = await page.post("/v1/audio/speech", json=SPEECH)
        assert answer.status_code == 401
        assert answer.headers["access-control-allow-origin"] == PAGE
        page.headers["authorization"] = f"Bearer {KEY}"
        for path in ("/v1/audio/speech", "/v1/audio/nothing"):
            answer = await page.post(path, json=SPEECH)
            assert answer.headers["access-control-allow-origin"] == PAGE
            assert answer.headers["access-control-expose-headers"] == "*"
            assert answer.headers["vary"] == "Origin"
            assert "access-control-allow-credentials" not in answer.headers


async def test_any_origin_is_any_origin() -> None:
    async with speaking(config("*")) as server, http(server) as page:
        answer = await preflight(page, "POST", "/v1/audio/speech")
        assert answer.headers["access-control-allow-origin"] == "*"


async def test_without_allowed_origins_no_page_but_the_server_s_own_is_let_in() -> None:
    async with speaking(config()) as server:
        async with http(server) as page:
            answer = await preflight(page, "POST", "/v1/audio/speech")
            assert answer.status_code == 403
            assert "access-control-allow-origin" not in answer.headers
        async with http(server, server.running.url) as page:
            page.headers["authorization"] = f"Bearer {KEY}"
            assert (await page.post("/v1/audio/speech", json=SPEECH)).status_code == 200
