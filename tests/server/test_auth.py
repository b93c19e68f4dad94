"""The gate: every route is behind it, whatever its kind."""

from __future__ import annotations

import errno
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route, WebSocketRoute

from realtime_tts.config import ServerConfig
from realtime_tts.loopback import is_loopback
from realtime_tts.metrics import Metrics
from realtime_tts.server.auth import OPEN_PATHS, Gate
from realtime_tts.server.tokens import Tokens
from realtime_tts.voices.library import VoiceLibrary
from tests.server.speaking import speaking

KEY = "correct-horse-battery"
OTHER = "another-key-that-counts"
HOST = "tts.example.com:8000"


async def inner(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "passed"})


def gate(**options: Any) -> Gate:
    settings: dict[str, Any] = {"api_keys": (), "allowed_origins": (), "loopback": False}
    return Gate(inner, metrics=Metrics(), **(settings | options))


def scope_of(
    kind: str = "websocket",
    path: str = "/v1/tts",
    subprotocols: tuple[str, ...] = (),
    **headers: str,
) -> dict[str, Any]:
    raw = [(b"host", HOST.encode())]
    raw += [(k.replace("_", "-").encode(), v.encode("latin-1")) for k, v in headers.items()]
    return {"type": kind, "path": path, "headers": raw, "subprotocols": subprotocols}


async def status(app: Gate, scope: dict[str, Any]) -> int:
    """200 if the gate lets it pass, else the status it answers with."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        raise AssertionError("the gate has nothing to receive")

    await app(scope, receive, send)  # type: ignore[arg-type]
    if sent[0]["type"] == "passed":
        return 200
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    assert [message["type"] for message in sent] == [f"{kind}.start", f"{kind}.body"]
    names = [name for name, _ in sent[0]["headers"]]
    assert (b"www-authenticate" in names) == (sent[0]["status"] == 401)
    error = json.loads(sent[1]["body"])
    assert (error["type"], error["fatal"]) == ("error", True)
    answer: int = sent[0]["status"]
    return answer


def is_open(path: str) -> bool:
    """The probes, and what is the same in every copy of the source: the demo page, what it is made
    of, and the description of the routes; nothing that tells or does anything."""
    files = ("/", "/openapi.json", "/docs", "/docs.css")
    return path in OPEN_PATHS or path in files or path.startswith(("/page/", "/client/"))


async def test_every_route_of_the_app_needs_a_key_but_probes_and_page(tmp_path: Path) -> None:
    config = ServerConfig(port=0, api_keys=(KEY,))
    async with speaking(config=config, voices=VoiceLibrary(tmp_path)) as server:
        routes = server.app_routes()
        assert {route.path for route in routes} > OPEN_PATHS
        for route in routes:
            assert isinstance(route, Route | WebSocketRoute), f"decide about {route}"
            kind = "websocket" if isinstance(route, WebSocketRoute) else "http"
            expected = {200} if is_open(route.path) else {401}
            if route.path.startswith("/v1/text-to-speech/") and kind == "websocket":
                expected = {101}  # the key may come in the first message, and nothing before it
            if kind == "http" and is_open(route.path) and route.path not in OPEN_PATHS:
                assert isinstance(route, Route) and route.methods == {"GET", "HEAD"}
            assert await server.status(kind, route.path) in expected, route.path
            with_key = await server.status(kind, route.path, {"Authorization": f"Bearer {KEY}"})
            if kind == "websocket":
                nowhere = route.path == "/{path:path}" or "text-to-dialogue" in route.path
                assert with_key == (404 if nowhere else 101), route.path
            else:
                # What a plain GET gets there: sockets and speech want another method.
                answers = {"/v1/tts": 426, "/v1/models/{model:path}": 404}
                answers |= dict.fromkeys(("/v1/audio/speech", "/tts/bytes", "/tts/sse"), 405)
                if route.path.startswith("/v1/text-to-speech/"):
                    answers[route.path] = 405
                answers |= dict.fromkeys(("/v1/speak", "/v2/speak"), 405)
                tokens = ("/v1/token", "/v1/auth/grant", "/access-token")
                answers |= dict.fromkeys((*tokens, "/v1/single-use-token/{kind}"), 405)
                if route.path.endswith("-rules") and "{id}" in route.path:
                    answers[route.path] = 405
                absent = ("{id}", "{ref}", "text-to-dialogue", "/add-from-")
                missing = any(part in route.path for part in absent)
                found = 404 if missing else 200
                assert with_key == answers.get(route.path, found), route.path


@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_a_mounted_or_unknown_path_is_behind_the_gate_too(kind: str) -> None:
    assert await status(gate(api_keys=(KEY,)), scope_of(kind, "/not/a/route")) == 401
    assert await status(gate(api_keys=(KEY,)), scope_of(kind, "/livez/../v1/tts")) == 401


async def test_without_keys_everybody_may_in() -> None:
    assert await status(gate(), scope_of()) == 200


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"authorization": f"Bearer {KEY}"}, 200),
        ({"authorization": f"bearer {KEY}"}, 200),
        ({"authorization": f"Token {OTHER}"}, 200),
        ({"x_api_key": KEY}, 200),
        ({"x_api_key": OTHER}, 200),
        ({}, 401),
        ({"authorization": f"Basic {KEY}"}, 401),
        ({"authorization": KEY}, 401),
        ({"authorization": "Bearer "}, 401),
        ({"authorization": f"Bearer {KEY[:-1]}"}, 401),
        ({"authorization": f"Bearer {KEY}x"}, 401),
        ({"authorization": f"Bearer {KEY.upper()}"}, 401),
        ({"x_api_key": f"{KEY}, {OTHER}"}, 401),
        ({"x_api_key": "\xff\xfe"}, 401),
        ({"cookie": f"key={KEY}"}, 401),
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_keys_are_taken_from_headers_only(
    kind: str, headers: dict[str, Any], expected: int
) -> None:
    assert await status(gate(api_keys=(KEY, OTHER)), scope_of(kind, **headers)) == expected


async def test_a_browser_puts_its_key_in_a_subprotocol() -> None:
    app = gate(api_keys=(KEY,))
    offers = ("realtime-tts.v1", f"realtime-tts.key.{KEY}")
    assert await status(app, scope_of(subprotocols=offers)) == 200
    assert await status(app, scope_of(subprotocols=("realtime-tts.v1",))) == 401
    assert await status(app, scope_of(subprotocols=(f"realtime-tts.key.{KEY}x",))) == 401


async def test_a_key_in_the_url_is_not_taken() -> None:
    scope = scope_of() | {"query_string": f"api_key={KEY}&token={KEY}".encode()}
    assert await status(gate(api_keys=(KEY,)), scope) == 401


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://tts.example.com:8000", 200),  # the server's own
        ("https://tts.example.com:8000", 200),  # behind a proxy that ends TLS
        ("https://TTS.example.com:8000", 200),
        ("https://app.example.com", 200),  # in the list
        ("https://app.example.com:444", 403),
        ("http://app.example.com", 403),
        ("https://app.example.com.evil.example", 403),
        ("https://evil.example", 403),
        ("http://tts.example.com", 403),
        ("http://tts.example.com:8000.evil.example", 403),
        ("null", 403),
        ("", 403),
        ("http://", 403),
        ("http://[", 403),  # what Python's parser of URLs refuses
        ("http://[tts.example.com:8000", 403),
    ],
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
async def test_origins_are_compared_whole(kind: str, origin: str, expected: int) -> None:
    app = gate(allowed_origins=("https://app.example.com",))
    assert await status(app, scope_of(kind, origin=origin)) == expected


async def test_any_origin_may_in_where_the_list_says_so() -> None:
    app = gate(allowed_origins=("*",))
    assert await status(app, scope_of(origin="https://anybody.example")) == 200
    assert await status(app, scope_of(origin="null")) == 200


class NoSpace:
    """Single-use tokens that cannot be noted as used."""

    def has(self, id: str) -> bool:
        return False

    def use(self, id: str, until: float) -> bool:
        raise OSError(errno.ENOSPC, "No space left on device", "/tmp/used-tokens")


async def test_a_single_use_token_that_cannot_be_noted_is_refused_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    digest = hashlib.sha256(KEY.encode()).digest()
    tokens, app = Tokens([digest]), gate(api_keys=(KEY,), used_tokens=NoSpace())
    once, often = (tokens.mint(digest, 60, once=once) for once in (True, False))
    assert await status(app, scope_of(authorization=f"Bearer {once}")) == 503
    assert await status(app, scope_of(authorization=f"Bearer {often}")) == 200
    [record] = [one for one in caplog.records if one.getMessage() == "token.not_used"]
    assert "No space left" in record.__dict__["fields"]["why"]


async def test_an_origin_does_not_stand_in_for_a_key() -> None:
    app = gate(api_keys=(KEY,), allowed_origins=("*",))
    assert await status(app, scope_of(origin="https://anybody.example")) == 401


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1:8000", 200),
        ("localhost:8000", 200),
        ("[::1]:8000", 200),
        ("evil.test:8000", 403),
    ],
)
async def test_a_name_made_to_resolve_to_this_machine_is_not_our_own(
    host: str, expected: int
) -> None:
    scope = scope_of(origin=f"http://{host}")
    scope["headers"][0] = (b"host", host.encode())
    assert await status(gate(loopback=True), scope) == expected


async def test_two_host_headers_are_nobodys_own() -> None:
    scope = scope_of(origin=f"http://{HOST}")
    scope["headers"].append((b"host", b"other.example"))
    assert await status(gate(), scope) == 403


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("app.localhost", True),
        ("LOCALHOST", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.evil.example", False),
        ("", False),
    ],
)
def test_which_hosts_are_this_machine(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
