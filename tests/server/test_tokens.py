"""Short-lived tokens: who gets one, what it is good for, and how it ends."""

from __future__ import annotations

import base64
import json
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import pytest
import websockets

from realtime_tts.config import ServerConfig
from realtime_tts.server.tokens import Tokens, UsedByAll, UsedHere
from tests.server.asking import client_of
from tests.server.speaking import speaking

KEY, OTHER = "correct-horse-battery", "another-key-that-counts"
PAGE = "https://app.example.com"
A, B = b"digest of a key", b"digest of another"
MINTS = ["/v1/token", "/v1/single-use-token/tts_websocket", "/v1/auth/grant", "/access-token"]


def config(*keys: str) -> ServerConfig:
    return ServerConfig(port=0, api_keys=keys or (KEY,), allowed_origins=(PAGE,))


def http(server: Any, credential: str | None = KEY, **headers: str) -> httpx2.AsyncClient:
    given = {} if credential is None else {"authorization": f"Bearer {credential}"}
    return client_of(server, given | headers)


async def token_of(server: Any, query: str = "") -> str:
    async with http(server) as backend:
        answer = await backend.post("/v1/token" + query)
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["token"]
        return token


async def opens(server: Any, path: str, *subprotocols: str, origin: str | None = None) -> bool:
    """Whether a socket is let in."""
    url = f"ws://127.0.0.1:{server.port}{path}"
    offered: Any = subprotocols or None
    try:
        async with websockets.connect(url, subprotocols=offered, origin=origin):  # type: ignore[arg-type]
            return True
    except websockets.InvalidStatus as refused:
        assert refused.response.status_code == 401
        return False


# What a token says.


def takes(tokens: Tokens, token: bytes, origins: list[str]) -> bytes | str | None:
    """The key of a token that holds, which is used with that."""
    shown = tokens.read(token, origins)
    return shown.key if shown is not None and tokens.use(shown) else None


def test_a_token_holds_for_its_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    one, now = Tokens([A]), time.time()
    token = one.mint(A, 60).encode()
    assert takes(one, token, []) and takes(one, token, [PAGE])
    monkeypatch.setattr(time, "time", lambda: now + 59)
    assert takes(one, token, [])
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert not takes(one, token, [])


def test_a_token_is_bound_to_its_key_on_every_server() -> None:
    token = Tokens([A, B]).mint(B, 60).encode()
    assert takes(Tokens([B]), token, [])
    assert not takes(Tokens([A]), token, [])
    assert not takes(Tokens([]), token, [])
    assert not takes(Tokens([A]), Tokens([]).mint(b"", 60).encode(), [])


def test_a_token_is_bound_to_its_origin() -> None:
    one = Tokens([A])
    token = one.mint(A, 60, origin=PAGE).encode()
    assert takes(one, token, [PAGE])
    for origins in ([], ["https://evil.example"], [PAGE, "https://evil.example"]):
        assert not takes(one, token, origins)


def test_a_token_for_one_use_is_used_up_and_forgotten_when_it_expires(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used, now = UsedHere(), time.time()
    one = Tokens([A], used)
    first, second = (one.mint(A, 60, once=True).encode() for _ in range(2))
    assert takes(one, first, []) and takes(one, second, [])
    assert not takes(one, first, []) and not takes(one, second, [])
    assert len(used._used) == len(used._forget) == 2
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert not takes(one, first, [])
    assert takes(one, one.mint(A, 60, once=True).encode(), [])
    assert len(used._used) == len(used._forget) == 1


def test_a_token_that_one_process_has_taken_is_used_up_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many ask at once: files appear in one step."""
    now, fronts = time.time(), [Tokens([A], UsedByAll(tmp_path)) for _ in range(4)]
    tokens = [fronts[0].mint(A, 60, once=True).encode() for _ in range(20)]
    with ThreadPoolExecutor(8) as threads:
        for token in tokens:
            taken = [threads.submit(takes, one, token, []) for one in fronts * 2]
            assert [one.result() for one in taken if one.result()] == [A]
    assert len(list(tmp_path.iterdir())) == len(tokens)
    monkeypatch.setattr(time, "time", lambda: now + 200)
    assert not takes(fronts[0], tokens[0], [])
    assert takes(fronts[0], fronts[0].mint(A, 60, once=True).encode(), [])
    assert len(list(tmp_path.iterdir())) == 1, "what has expired is forgotten"


def test_no_byte_of_a_token_can_be_changed() -> None:
    one = Tokens([A])
    token = one.mint(A, 60)
    sealed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    assert json.loads(sealed[32:])["once"] is False, "the claim can be read, not changed"
    for at in range(len(sealed)):
        changed = sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]
        assert not takes(one, base64.urlsafe_b64encode(changed).rstrip(b"="), [])
    for garbage in (b"", b"a", b"!", token.encode()[:-8], b"\xff\xfe", b"=" * 50):
        assert not takes(one, garbage, [])


# Who gets one.


@pytest.mark.parametrize("path", MINTS)
async def test_a_token_is_for_who_has_a_key_and_makes_no_other(path: str) -> None:
    async with speaking(config()) as server:
        token = await token_of(server)
        for credential in (None, "wrong", token):
            async with http(server, credential) as client:
                assert (await client.post(path)).status_code == 401
        async with http(server) as client:
            answer = await client.post(path)
            assert answer.status_code == 200
            assert answer.headers["cache-control"] == "no-store"


async def test_a_server_without_keys_gives_tokens_that_nobody_needs() -> None:
    async with speaking() as server, http(server, None) as client:
        for path in MINTS:
            assert (await client.post(path)).status_code == 200


@pytest.mark.parametrize("asked", ["0", "3601", "-1", "x", "1.5", "9" * 400])
async def test_a_token_lasts_minutes(asked: str) -> None:
    async with speaking(config()) as server, http(server) as client:
        answer = await client.post("/v1/token?seconds=" + asked)
        assert answer.status_code == 400 and "1 to 3600 seconds" in answer.json()["message"]
        answer = await client.post("/v1/token?seconds=3600")
        assert answer.json()["expires_in"] == 3600
        assert (await client.post("/v1/token")).json()["expires_in"] == 300


# What it is good for.


async def test_a_token_speaks_wherever_its_key_does() -> None:
    async with speaking(config(OTHER, KEY)) as server:
        token = await token_of(server)
        body = {"input": "Hi.", "voice": "alto", "response_format": "pcm"}
        async with http(server, token) as client:
            assert (await client.post("/v1/audio/speech", json=body)).status_code == 200
            assert (await client.get("/v1/voices")).status_code == 200
        assert await opens(server, "/v1/tts", "realtime-tts.v1", f"realtime-tts.key.{token}")
        assert not await opens(server, "/v1/tts", "realtime-tts.v1", "realtime-tts.key.x" + token)
        assert not await opens(server, f"/v1/tts?api_key={token}")


async def test_a_token_reaches_no_metrics_and_changes_no_voices() -> None:
    async with speaking(config()) as server:
        async with http(server, await token_of(server)) as client:
            assert (await client.get("/metrics")).status_code == 401
            assert (await client.post("/v1/voices")).status_code == 401
            assert (await client.delete("/v1/voices/anna")).status_code == 401


async def test_a_token_of_one_page_is_for_that_page() -> None:
    async with speaking(config()) as server:
        token = await token_of(server, f"?origin={PAGE}")
        offer = ("realtime-tts.v1", f"realtime-tts.key.{token}")
        assert await opens(server, "/v1/tts", *offer, origin=PAGE)
        assert not await opens(server, "/v1/tts", *offer)
        assert not await opens(server, "/v1/tts", *offer, origin=server.running.url)


# As other APIs give them.


async def test_a_token_for_one_use_is_not_used_up_by_a_request_that_is_refused() -> None:
    """The pages of one key share what it may ask in a second."""
    async with speaking(config()) as server, http(server) as client:
        path = "/v1/single-use-token/tts_websocket"
        token = (await client.post(path)).json()["token"]
        allowance = server.running.front.addresses.of_key(sha256(KEY.encode()).digest())
        allowance.change(rate=0.0, burst=1.0)
        while allowance.take(time.monotonic()):
            pass
        async with http(server, token) as page:
            assert (await page.get("/v1/voices")).status_code == 429
            allowance.change(rate=1e6, burst=1.0)  # some time later
            assert (await page.get("/v1/voices")).status_code == 200
            assert (await page.get("/v1/voices")).status_code == 401


async def test_elevenlabs_tokens_are_for_one_socket() -> None:
    async with speaking(config()) as server, http(server) as client:
        answer = await client.post("/v1/single-use-token/tts_websocket")
        token = answer.json()["token"]
        path = f"/v1/text-to-speech/alto/stream-input?single_use_token={token}"
        assert await opens(server, path)
        assert not await opens(server, path)
        assert answer.headers["request-id"].startswith("req_")
        assert answer.headers["cache-control"] == "no-store"
        answer = await client.post("/v1/single-use-token/realtime_scribe")
        assert answer.status_code == 400
        assert "tts_websocket" in answer.json()["detail"]["message"]


async def test_deepgram_s_grants_last_half_a_minute_or_as_asked() -> None:
    async with speaking(config()) as server, http(server) as client:
        assert (await client.post("/v1/auth/grant")).json()["expires_in"] == 30
        granted = (await client.post("/v1/auth/grant", json={"ttl_seconds": 60})).json()
        assert granted["expires_in"] == 60
        for path in ("/v1/speak", "/v2/speak"):
            assert await opens(server, path, "bearer", granted["access_token"])
        for bad in (0, 3_601, "60", True, 1.5):
            answer = await client.post("/v1/auth/grant", json={"ttl_seconds": bad})
            assert answer.status_code == 400 and "seconds" in answer.json()["err_msg"]
        for raw in (b"[]", b"{", b"\xff", b"{}" + b" " * 5_000):
            assert (await client.post("/v1/auth/grant", content=raw)).status_code == 400


async def test_cartesia_s_access_tokens_go_into_the_address() -> None:
    async with speaking(config()) as server, http(server) as client:
        asked = {"grants": {"tts": True}, "expires_in": 60}
        token = (await client.post("/access-token", json=asked)).json()["token"]
        assert await opens(server, f"/tts/websocket?access_token={token}")
        assert not await opens(server, f"/tts/websocket?access_token={token}x")
        answer = await client.post("/access-token", json={"expires_in": 0})
        assert answer.status_code == 400 and "seconds" in answer.json()["message"]
