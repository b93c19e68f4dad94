"""Writer: the only task that sends on a socket.

Messages wait here, in order. Their number is bounded: a reader so slow that more than `max_bytes`
wait is given up. Speech does not wait here: each speech is a source, which is asked for its next
frame when the socket has taken the one before. Frames that exist together leave together.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from starlette.websockets import WebSocket, WebSocketDisconnect

from realtime_tts.protocol.effects import Close
from realtime_tts.server.guarded import FLUSH_EXTENSION
from realtime_tts.server.websocket import MORE_EXTENSION

Frame = str | bytes
"""A text frame or a binary one."""
Messages = Iterable[Frame]
"""Frames, in order."""

_AT_ONCE = 16_384
"""Bytes of frames that leave together: a system call costs more than the rest of a packet."""
_WRITING_SECONDS = 0.001
"""Longest time for the frames of one socket; then everything else has its turn."""


class WriterFull(Exception):
    """The client reads so slowly that more bytes wait than are allowed."""


class FrameSource(Protocol):
    """What has frames to send; it is asked again after each frame, and after a `wake`."""

    def next_frame(self) -> Frame | None:
        """Return the frame to send now, or None if there is none yet; it was sent before the
        next call."""


class _Item(NamedTuple):
    data: Frame
    source: FrameSource | None


class Writer:
    """The way out of one socket. Call `run` in a task; it returns after `close`."""

    def __init__(self, socket: WebSocket, max_bytes: int) -> None:
        self._socket = socket
        self._max_bytes = max_bytes
        self._items: deque[_Item | Close] = deque()
        self._bytes = 0
        self._sources: deque[FrameSource] = deque()
        self._filled = asyncio.Event()
        self._shut = False

    def put(self, data: Frame) -> None:
        """Send a frame after all messages that wait, and before further frames of sources.

        Raises WriterFull, and then has not added it.
        """
        if self._shut:
            return
        if self._bytes + len(data) > self._max_bytes:
            raise WriterFull(
                f"{self._bytes} bytes wait for the client, {self._max_bytes} are allowed"
            )
        self._add(_Item(data, None))

    def wake(self, source: FrameSource) -> None:
        """Ask the source for frames, in turns with the others."""
        if not self._shut and source not in self._sources:
            self._sources.append(source)
            self._filled.set()

    def drop(self, source: FrameSource) -> None:
        """Ask the source no more, and drop its frames that have not been sent."""
        if source in self._sources:
            self._sources.remove(source)
        for item in [item for item in self._items if isinstance(item, _Item)]:
            if item.source is source:
                self._items.remove(item)
                self._bytes -= len(item.data)

    def close(self, code: int, reason: str) -> None:
        """Close the socket when every message before this was sent; nothing follows."""
        if not self._shut:
            self._shut = True
            self._items.append(Close(code, reason))
            self._filled.set()

    def shut(self) -> None:
        """Drop all that waits and accept no more, since the socket is lost."""
        self._shut = True
        self._items.clear()
        self._sources.clear()
        self._bytes = 0

    async def run(self) -> None:
        """Send until the socket is gone or closed. Raises what a source raises, and may run
        again."""
        try:
            while True:
                if not self._items and not self._sources:
                    self._filled.clear()
                    await self._filled.wait()
                try:
                    if await self._send_some():
                        return
                finally:
                    self._flush()
                if self._items or self._sources:
                    await asyncio.sleep(0)
        except (WebSocketDisconnect, OSError):
            self.shut()  # the reader sees it too and cleans up

    async def _send_some(self) -> bool:
        """Send what there is, for a while. Return whether the socket was closed."""
        until, unflushed = time.monotonic() + _WRITING_SECONDS, 0
        while self._items or self._sources:
            data = None
            if self._sources and (not self._items or self._is_last_message()):
                data = self._ask(self._sources.popleft())
            if self._items:
                item = self._items.popleft()
                if isinstance(item, Close):
                    await self._socket.close(item.code, item.reason)
                    return True
                data = item.data
                self._bytes -= len(data)
            if data is not None:
                await self._send(data)
                unflushed += len(data)
            if time.monotonic() >= until:
                break
            if unflushed >= _AT_ONCE:
                self._flush()
                unflushed = 0
        return False

    def _is_last_message(self) -> bool:
        """Return whether only one message waits, with which a frame can still leave."""
        item = self._items[0]
        return len(self._items) == 1 and isinstance(item, _Item) and item.source is None

    async def _send(self, data: Frame) -> None:
        """Send a frame with the next `_flush`; wait if the client reads slowly."""
        message: dict[str, object] = {"type": "websocket.send", MORE_EXTENSION: True}
        message["text" if isinstance(data, str) else "bytes"] = data
        await self._socket.send(message)

    def _flush(self) -> None:
        flush: Callable[[], None] | None
        if (flush := self._socket.scope.get("extensions", {}).get(FLUSH_EXTENSION)) is not None:
            flush()

    def _ask(self, source: FrameSource) -> Frame | None:
        """Return the source's next frame, if it can be sent now."""
        data = source.next_frame()
        if data is None:
            return None
        if not self._shut and source not in self._sources:
            self._sources.append(source)
        if not self._items:
            return data
        self._add(_Item(data, source))  # behind messages that were put meanwhile
        return None

    def _add(self, item: _Item) -> None:
        self._items.append(item)
        self._bytes += len(item.data)
        self._filled.set()
