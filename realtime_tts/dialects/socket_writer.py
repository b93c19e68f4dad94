"""SocketWriter: the one who sends. Answers of the reader go in without waiting, sound waits.

Every context has at most one piece of sound here and waits until the socket took it, so contexts
take turns in the order in which they asked, and one with more to say delays none of the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from starlette.websockets import WebSocket, WebSocketDisconnect


class WriterFullError(Exception):
    """The client reads so slowly that more than the limit waits."""


@dataclass(frozen=True, slots=True, eq=False)
class _Item:
    data: str | bytes
    owner: object
    sent: asyncio.Future[None] | None


@dataclass(frozen=True, slots=True)
class _Close:
    code: int
    reason: str


class SocketWriter:
    """A queue in front of one socket. `run` it in a task; it returns after `close`."""

    def __init__(self, websocket: WebSocket, max_bytes: int) -> None:
        self._socket = websocket
        self._max_bytes = max_bytes
        self._items: deque[_Item | _Close] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self._shut = False

    def put(self, data: str | bytes, owner: object = None) -> None:
        """Send it, behind everything that waits. Raises WriterFullError."""
        self._add(_Item(data, owner, None))

    async def send(self, data: str | bytes, owner: object) -> None:
        """The same, and wait until the socket has taken it; for good if the socket is shut."""
        sent = asyncio.get_running_loop().create_future()
        self._add(_Item(data, owner, sent))
        await sent

    def drop(self, owner: object) -> None:
        """Take out everything of `owner` that has not been sent."""
        self._items = deque(
            item for item in self._items if isinstance(item, _Close) or item.owner is not owner
        )
        self._bytes = sum(len(item.data) for item in self._items if isinstance(item, _Item))

    def close(self, code: int, reason: str) -> None:
        """Close the socket when everything before this was sent; nothing follows."""
        if not self._shut:
            self._items.append(_Close(code, reason))
            self._filled.set()
            self._shut = True

    def shut(self) -> None:
        """The socket is lost: forget what waits, take nothing more."""
        self._shut = True
        self._items.clear()
        self._bytes = 0

    async def run(self) -> None:
        try:
            while True:
                while not self._items:
                    self._filled.clear()
                    await self._filled.wait()
                item = self._items.popleft()
                if isinstance(item, _Close):
                    await self._socket.close(item.code, item.reason)
                    return
                self._bytes -= len(item.data)
                kind = "text" if isinstance(item.data, str) else "bytes"
                await self._socket.send({"type": "websocket.send", kind: item.data})
                if item.sent is not None and not item.sent.done():
                    item.sent.set_result(None)
        except (WebSocketDisconnect, OSError):
            self.shut()  # the reader hears it too and cleans up

    def _add(self, item: _Item) -> None:
        if self._shut:
            return
        if self._bytes + len(item.data) > self._max_bytes:
            raise WriterFullError(
                f"{self._bytes} bytes wait for the client, {self._max_bytes} are allowed"
            )
        self._items.append(item)
        self._bytes += len(item.data)
        self._filled.set()
