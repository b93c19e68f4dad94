"""Real sockets for peers that behave badly."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Self

from tests.waiting import SECONDS

TEXT, BINARY, CLOSE, PING, PONG, CONT = 0x1, 0x2, 0x8, 0x9, 0xA, 0x0


class RawPeer:
    """A client that can do everything wrong: a bare TCP socket with WebSocket frames by hand."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._loop = asyncio.get_running_loop()
        self._buffer = b""

    @classmethod
    async def connect(
        cls, port: int, *, receive_buffer: int | None = None, source: str | None = None
    ) -> Self:
        sock = socket.socket()
        if source is not None:
            sock.bind((source, 0))
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
        return cls(sock)

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self.sock, data)

    async def upgrade(self, path: str = "/", headers: str = "") -> bytes:
        """Send a WebSocket handshake; gives the head of the answer."""
        await self.send(
            (
                f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                f"Sec-WebSocket-Version: 13\r\n{headers}\r\n"
            ).encode()
        )
        return await self.head()

    async def head(self) -> bytes:
        """The head of an HTTP answer, or what came before the end."""
        while b"\r\n\r\n" not in self._buffer:
            data = await self._receive()
            if not data:
                break
            self._buffer += data
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        return head

    async def frame(self, opcode: int, payload: bytes = b"", *, fin: bool = True) -> None:
        """Send one frame, masked with zeros."""
        await self.send(frame_bytes(opcode, payload, fin=fin))

    async def next_frame(self) -> tuple[int, bytes]:
        """The next frame of the server: opcode and payload. Raises EOFError at the end."""
        head = await self._exactly(2)
        size = head[1] & 0x7F
        if size == 126:
            size = struct.unpack("!H", await self._exactly(2))[0]
        elif size == 127:
            size = struct.unpack("!Q", await self._exactly(8))[0]
        return head[0] & 0x0F, await self._exactly(size)

    async def close_code(self) -> int:
        """Read on until the server's close frame; its code."""
        while True:
            opcode, payload = await self.next_frame()
            if opcode == CLOSE:
                return int.from_bytes(payload[:2], "big")

    async def ended(self, seconds: float = SECONDS) -> bool:
        """Whether the server ends the connection within `seconds`; reads what comes meanwhile."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while await self._receive():
                    pass
                return True
        return False

    async def rest(self) -> bytes:
        """What still comes until the server ends the connection."""
        while data := await self._receive():
            self._buffer += data
        return bytes(self._buffer)

    def abort(self) -> None:
        """Vanish with a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    async def _receive(self) -> bytes:
        try:
            return await self._loop.sock_recv(self.sock, 65_536)
        except ConnectionError:
            return b""

    async def _exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            data = await self._receive()
            if not data:
                raise EOFError("the server ended the connection")
            self._buffer += data
        data, self._buffer = self._buffer[:count], self._buffer[count:]
        return data


def frame_bytes(
    opcode: int, payload: bytes = b"", *, fin: bool = True, rsv: int = 0, mask: bytes = bytes(4)
) -> bytes:
    """As a client sends it, masked."""
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    if len(payload) < 126:
        head += bytes([0x80 | len(payload)])
    elif len(payload) < 65_536:
        head += bytes([0xFE]) + struct.pack("!H", len(payload))
    else:
        head += bytes([0xFF]) + struct.pack("!Q", len(payload))
    key = int.from_bytes((mask * (len(payload) // 4 + 1))[: len(payload)], "big")
    masked = (int.from_bytes(payload, "big") ^ key).to_bytes(len(payload), "big")
    return head + mask + masked


Connecting = Callable[..., Awaitable[RawPeer]]
"""Connects one to a port."""
