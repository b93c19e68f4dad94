import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from realtime_tts import RealtimeTTS
from realtime_tts.client.voices import VoiceClient
from realtime_tts.errors import (
    CertificateRefused,
    ConnectionLost,
    HandshakeRefused,
    OverloadedError,
    RealtimeTTSError,
    RequestError,
)
from realtime_tts.protocol.messages import ErrorMessage, SessionStart
from tests.client.conftest import StandIn

UNAUTHORIZED = {
    "type": "error",
    "code": "unauthorized",
    "message": "a valid key, please",
    "fatal": True,
    "retryable": False,
}
NOT_READY = {
    "type": "error",
    "code": "not_ready",
    "message": "still loading",
    "fatal": True,
    "retryable": True,
    "retry_after_ms": 2000,
}


async def never(peer: Any) -> None:
    raise AssertionError("a refused handshake reaches no session")


def refusing(status: HTTPStatus, body: str) -> dict[str, Any]:
    def process_request(connection: ServerConnection, request: Request) -> Response:
        return connection.respond(status, body)

    return {"process_request": process_request}


@pytest.mark.parametrize(
    ("status", "body", "advice"),
    [
        (HTTPStatus.UNAUTHORIZED, json.dumps(UNAUTHORIZED), "pass api_key=: a valid key, please"),
        (HTTPStatus.FORBIDDEN, "", "does not let this client in"),
        (HTTPStatus.NOT_FOUND, "<html>nothing here</html>", "no speech server at this path"),
        (HTTPStatus.SERVICE_UNAVAILABLE, "later", "no capacity now or is not ready"),
    ],
)
async def test_a_refusal_is_an_error_with_its_status_and_advice(
    stand_in: StandIn, status: HTTPStatus, body: str, advice: str
) -> None:
    url = await stand_in.start(never, **refusing(status, body))
    with pytest.raises(HandshakeRefused, match=advice) as raised:
        await RealtimeTTS(url).connect()
    assert raised.value.status == status


async def test_a_server_that_says_when_to_come_back_is_an_overload(stand_in: StandIn) -> None:
    refusal = refusing(HTTPStatus.SERVICE_UNAVAILABLE, json.dumps(NOT_READY))
    url = await stand_in.start(never, **refusal)
    with pytest.raises(OverloadedError, match="still loading") as raised:
        await RealtimeTTS(url).connect()
    assert raised.value.retry_after == 2.0


async def test_the_api_key_travels_as_a_bearer_token_and_nowhere_else(stand_in: StandIn) -> None:
    seen: list[Request] = []

    async def script(peer: Any) -> None:
        seen.append(peer.socket.request)
        await peer.ready()
        await peer.until_closed()

    url = await stand_in.start(script)
    async with RealtimeTTS(url, api_key="s3cret-key"):
        pass
    assert seen[0].headers["Authorization"] == "Bearer s3cret-key"
    assert "s3cret" not in seen[0].path
    assert "Sec-WebSocket-Extensions" not in seen[0].headers


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_nothing_listening_is_a_refusal_without_status() -> None:
    with pytest.raises(HandshakeRefused, match="no server answers at ws://127") as raised:
        await RealtimeTTS(f"127.0.0.1:{unused_port()}").connect()
    assert raised.value.status == 0


@asynccontextmanager
async def tcp_server(greeting: bytes) -> AsyncIterator[str]:
    """Sends `greeting`; hangs up after it, or without one only when the client does."""
    gone = asyncio.Event()

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        if not greeting:
            await reader.read()
        writer.close()
        await writer.wait_closed()
        gone.set()

    async with await asyncio.start_server(serve_one, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await gone.wait()


async def test_a_server_that_never_answers_is_given_up() -> None:
    async with tcp_server(b"") as address:
        with pytest.raises(HandshakeRefused, match=r"no answer from .* within 0.2 s"):
            await RealtimeTTS(address, connect_timeout=0.2).connect()


async def test_an_address_that_never_answers_hides_no_other(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        await peer.until_closed()

    loop = asyncio.get_running_loop()
    connect = loop.sock_connect
    port = int((await stand_in.start(script)).rpartition(":")[2])

    async def two(*_: Any, **__: Any) -> list[Any]:
        hosts = ("192.0.2.1", "127.0.0.1")
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port)) for host in hosts]

    async def black_hole(sock: socket.socket, address: Any) -> None:
        if address[0] != "127.0.0.1":
            await asyncio.Event().wait()
        await connect(sock, address)

    monkeypatch.setattr(loop, "getaddrinfo", two)
    monkeypatch.setattr(loop, "sock_connect", black_hole)
    async with RealtimeTTS(f"speech.localhost:{port}", connect_timeout=5.0) as tts:
        assert tts.connected


async def test_a_server_that_speaks_something_else_is_named_so() -> None:
    async with tcp_server(b"220 mail.example ESMTP\r\n") as address:
        with pytest.raises(HandshakeRefused, match="did not answer as a WebSocket server"):
            await RealtimeTTS(address).connect()


@pytest.mark.parametrize(
    "answer", [b"<p>Hello</p>", b"[1]", b"\xff", b'{"voices": ' + b"[" * 100_000]
)
def test_an_answer_over_http_that_is_not_ours_is_named_so(
    monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    monkeypatch.setattr(VoiceClient, "_request", lambda *_: answer)
    with pytest.raises(HandshakeRefused, match="did not answer as a realtime-tts server"):
        VoiceClient("http://127.0.0.1:9").voices()


async def test_another_websocket_server_is_not_mistaken_for_ours() -> None:
    async def echo(socket: ServerConnection) -> None:
        await socket.wait_closed()

    async with serve(echo, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(HandshakeRefused, match="does not speak realtime-tts.v1"):
            await RealtimeTTS(f"127.0.0.1:{port}").connect()


async def test_no_ready_in_time_is_a_lost_connection(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.until_closed()

    url = await stand_in.start(script)
    with pytest.raises(ConnectionLost, match=r"no `ready` within 0.2 s"):
        await RealtimeTTS(url, reply_timeout=0.2).connect()


async def test_settings_the_server_cannot_do_are_a_request_error(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.ready()
        start = await peer.receive(SessionStart)
        assert start == SessionStart(voice="nobody")
        await peer.send(
            ErrorMessage(
                code="bad_settings",
                message="no voice nobody; there is: ava",
                fatal=False,
                retryable=False,
            )
        )
        await peer.until_closed()

    url = await stand_in.start(script)
    with pytest.raises(RequestError, match="bad_settings: no voice nobody"):
        await RealtimeTTS(url, voice="nobody").connect()


async def test_a_session_refused_after_the_upgrade_says_why(stand_in: StandIn) -> None:
    async def script(peer: Any) -> None:
        await peer.send(
            ErrorMessage(
                code="overloaded",
                message="no room",
                fatal=True,
                retryable=True,
                retry_after_ms=1500,
            )
        )
        await peer.socket.close(1013, "overloaded")

    url = await stand_in.start(script)
    with pytest.raises(OverloadedError, match="no room") as raised:
        await RealtimeTTS(url).connect()
    assert raised.value.retry_after == 1.5


@pytest.mark.parametrize(
    ("error", "final"),
    [
        (HandshakeRefused("key", 401), True),
        (HandshakeRefused("path", 404), True),
        (RequestError("voice"), True),
        (HandshakeRefused("busy", 429), False),
        (HandshakeRefused("loading", 503), False),
        (HandshakeRefused("down", 0), False),
        (OverloadedError("busy", 1.0), False),
        (CertificateRefused("another's"), True),
        (ConnectionLost("gone"), False),
    ],
)
def test_only_what_time_can_change_is_tried_again(error: RealtimeTTSError, final: bool) -> None:
    assert error.retryable is not final
