"""The WebSocket layer against the cases of the Autobahn suite, with a peer that is as strict.

The application behind it echoes, as the suite expects, so that what arrives can be seen;
everything else is as the server sets it up.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from realtime_tts.config import LimitsConfig, SocketConfig
from tests.server.apps import aimed
from tests.server.autobahn_cases import (
    BINARY,
    CASES,
    CLOSE,
    DROPPED,
    NORMAL,
    PAUSE,
    PONG,
    ROUND_TRIPS,
    TEXT,
    Case,
    Large,
    close,
    frame,
    limits,
)
from tests.server.peers import RawPeer

pytestmark = pytest.mark.asyncio(loop_scope="module")
SECONDS = 20.0


async def echo(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({**message, "type": "websocket.send"})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def port() -> AsyncIterator[int]:
    most = LimitsConfig().max_frame_bytes
    async with aimed(echo, SocketConfig(), ws_max_size=most) as server:
        yield server.port


class StrictPeer(RawPeer):
    """Takes no frame that a server must not send."""

    async def frame_or_end(self) -> tuple[int, bytes] | None:
        """The next frame; None at the end of the connection."""
        try:
            head = await self._exactly(2)
        except EOFError:
            return None
        assert head[0] & 0x70 == 0, "a reserved bit is set"
        assert head[0] & 0x80, "a frame that is no message"
        assert head[0] & 0x0F in (TEXT, BINARY, CLOSE, PONG), "an opcode that nobody asked for"
        assert not head[1] & 0x80, "a masked frame"
        size = head[1] & 0x7F
        assert size < 126 or head[0] & 0x0F in (TEXT, BINARY), "a long control frame"
        if size >= 126:
            octets = 2 if size == 126 else 8
            size = int.from_bytes(await self._exactly(octets), "big")
            assert size >= (126 if octets == 2 else 65_536), "a length in more octets than it needs"
        return head[0] & 0x0F, await self._exactly(size)

    async def write(self, case: Case) -> None:
        """All that the case sends, as far as the server takes it."""
        with contextlib.suppress(ConnectionError):
            for data in case.sends:
                if data is PAUSE:
                    await self.nothing_comes()
                else:
                    await self.send(data)
                    await asyncio.sleep(0)

    async def nothing_comes(self) -> None:
        assert not self._buffer
        self.sock.setblocking(False)
        await asyncio.sleep(0.05)
        with pytest.raises(BlockingIOError):
            self.sock.recv(1, socket.MSG_PEEK)


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[StrictPeer]:
    peer = await StrictPeer.connect(port)
    peer.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        async with asyncio.timeout(SECONDS):
            assert b" 101 " in await peer.upgrade()
            yield peer
    finally:
        peer.sock.close()


async def run(port: int, case: Case) -> None:
    async with connected(port) as peer:
        writing = asyncio.create_task(peer.write(case))
        came: list[tuple[int, bytes]] = []
        closes_itself = case.has_closed or case.closes != (NORMAL,)
        if not closes_itself:
            for _ in case.back:
                came.append(await peer.frame_or_end() or (CLOSE, b"the end"))
            await writing
            await peer.send(close(NORMAL))
        code = DROPPED
        while (next_one := await peer.frame_or_end()) is not None:
            if next_one[0] == CLOSE:
                code = int.from_bytes(next_one[1][:2], "big") or 1005
                next_one[1][2:].decode()
                assert await peer.frame_or_end() is None, "a frame behind the close"
                break
            came.append(next_one)
        await writing
        assert code in case.closes
        expected = case.back[: len(came)] if case.may_lose else case.back
        assert [(kind, len(data)) for kind, data in came] == [(k, len(d)) for k, d in expected]
        assert tuple(came) == expected


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.number)
async def test_case(port: int, case: Case) -> None:
    await run(port, case)


@pytest.mark.parametrize("large", list(limits()), ids=lambda large: large.number)
async def test_case_with_a_large_message(port: int, large: Large) -> None:
    await run(port, large.case())


@pytest.mark.parametrize(("number", "opcode", "size"), ROUND_TRIPS, ids=lambda value: str(value))
async def test_case_of_round_trips(port: int, number: str, opcode: int, size: int) -> None:
    sent = frame(opcode, b"*" * size)
    async with connected(port) as peer:
        for _ in range(1_000):
            await peer.send(sent)
            assert await peer.frame_or_end() == (opcode, b"*" * size)
        await peer.send(close(NORMAL))
        assert await peer.frame_or_end() == (CLOSE, close_payload(NORMAL))


def close_payload(code: int) -> bytes:
    return code.to_bytes(2, "big")


@pytest.mark.parametrize(
    "offer",
    [
        "permessage-deflate",
        "permessage-deflate; client_max_window_bits",
        "permessage-deflate; server_max_window_bits=9; client_max_window_bits=9",
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
    ],
)
async def test_compression_of_12_and_13_is_declined_and_its_bit_refused(
    port: int, offer: str
) -> None:
    peer = await StrictPeer.connect(port)
    head = await peer.upgrade(headers=f"Sec-WebSocket-Extensions: {offer}\r\n")
    assert b" 101 " in head and b"extensions" not in head.lower()
    await peer.send(frame(TEXT, b"\xf2\x48\xcd\xc9\xc9\x07\x00", rsv=4))  # "Hello", deflated
    assert await peer.close_code() == 1002
    peer.sock.close()
