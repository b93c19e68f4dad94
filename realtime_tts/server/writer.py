"""Writer: the only one that sends on a socket, and what waits for it, in order.

It is bounded: a reader so slow that more than `max_bytes` wait is not worth waiting for. What is of
an owner, a speech or a context, can be taken out again before it is sent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from starlette.websockets import WebSocket, WebSocketDisconnect

Messages = Iterable[str | bytes]
"""Text frames and binary ones, in order."""


class WriterFull(Exception):
    """The client reads so slowly that more than the limit waits."""


class _Item(NamedTuple):
    data: str | bytes | None
    owner: object
    size: int
    taken: Callable[[], None] | None
    sent: Callable[[], Messages] | None


class _Close(NamedTuple):
    code: int
    reason: str


class Writer:
    """A queue in front of one socket. `run` it in a task; it returns after `close`."""

    def __init__(self, socket: WebSocket, max_bytes: int) -> None:
        self._socket = socket
        self._max_bytes = max_bytes
        self._items: deque[_Item | _Close] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self._shut = False

    def put(
        self,
        data: str | bytes | None,
        owner: object = None,
        *,
        size: int | None = None,
        taken: Callable[[], None] | None = None,
        sent: Callable[[], Messages] | None = None,
    ) -> None:
        """Send a frame behind everything that waits; None stands for a moment between frames.

        `size`: the bytes it counts for, if not its own. `taken` is called right before it is sent,
        `sent` when the socket has it; what that gives goes out at once, a few frames in each pass
        of the event loop. Neither may raise. Raises WriterFull, and then has not added it.
        """
        if self._shut:
            return
        size = len(data or "") if size is None else size
        if self._bytes + size > self._max_bytes:
            raise WriterFull(
                f"{self._bytes} bytes wait for the client, {self._max_bytes} are allowed"
            )
        self._items.append(_Item(data, owner, size, taken, sent))
        self._bytes += size
        self._filled.set()

    async def send(self, data: str | bytes, owner: object) -> None:
        """Send it, and wait until the socket has it; for good if the socket is shut, or the owner's
        frames are dropped. Who sends so has one frame here at most, so owners take turns."""
        handed = asyncio.get_running_loop().create_future()

        def sent() -> Messages:
            if not handed.done():
                handed.set_result(None)
            return ()

        self.put(data, owner, sent=sent)
        await handed

    def drop(self, owner: object) -> None:
        """Take out everything of `owner` that has not been sent."""
        kept = [item for item in self._items if isinstance(item, _Close) or item.owner is not owner]
        self._items = deque(kept)
        self._bytes = sum(item.size for item in kept if isinstance(item, _Item))

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
        """Send until the socket is gone or was closed."""
        try:
            while True:
                while not self._items:
                    self._filled.clear()
                    await self._filled.wait()
                item = self._items.popleft()
                if isinstance(item, _Close):
                    await self._socket.close(item.code, item.reason)
                    return
                self._bytes -= item.size
                if item.taken is not None:
                    item.taken()
                if item.data is not None:
                    await self._socket.send(_frame(item.data))
                if item.sent is not None:
                    for data in item.sent():
                        await self._socket.send(_frame(data))
                        await asyncio.sleep(0)
        except (WebSocketDisconnect, OSError):
            self.shut()  # the reader hears it too and cleans up


def _frame(data: str | bytes) -> dict[str, Any]:
    return {"type": "websocket.send", "text" if isinstance(data, str) else "bytes": data}
