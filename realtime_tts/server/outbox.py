"""Outbox: what waits for one socket, in the order it will be sent.

Everybody puts, only the writer takes. It is bounded: a reader so slow that more than `max_bytes`
wait is not worth waiting for. Audio counts as the bytes it has as PCM of the engine, whatever its
format: what is bounded is how far behind the reader may be. An interrupt takes a turn's packets out
again before they are sent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from realtime_tts.audio.pcm import BYTES_PER_SAMPLE

T = TypeVar("T")  # what identifies a turn; the outbox only compares it


@dataclass(frozen=True, slots=True)
class TextItem:
    """A JSON message."""

    text: str


@dataclass(frozen=True, slots=True)
class Packet(Generic[T]):
    """A packet of audio of `turn`, with `samples` of the engine's (24 kHz) in it."""

    turn: T
    data: bytes
    samples: int


@dataclass(frozen=True, slots=True)
class TurnOver(Generic[T]):
    """Nothing of `turn` follows: everything before this has been handed to the socket."""

    turn: T


@dataclass(frozen=True, slots=True)
class CloseItem:
    """Close the socket; nothing follows."""

    code: int
    reason: str


class OutboxFullError(Exception):
    """The client reads so slowly that more than the limit waits."""


class Outbox(Generic[T]):
    """A queue of items for one writer."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._items: deque[TextItem | Packet[T] | TurnOver[T] | CloseItem] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self._shut = False

    @property
    def waiting_bytes(self) -> int:
        return self._bytes

    def put(self, item: TextItem | Packet[T] | TurnOver[T] | CloseItem) -> None:
        """Add an item at the end. Raises OutboxFullError, and then has not added it."""
        if self._shut:
            return
        size = _size(item)
        if self._bytes + size > self._max_bytes:
            raise OutboxFullError(
                f"{self._bytes} bytes wait for the client, {self._max_bytes} are allowed"
            )
        self._items.append(item)
        self._bytes += size
        self._filled.set()

    async def take(self) -> TextItem | Packet[T] | TurnOver[T] | CloseItem:
        """The next item; waits for one."""
        while not self._items:
            self._filled.clear()
            await self._filled.wait()
        item = self._items.popleft()
        self._bytes -= _size(item)
        return item

    def drop(self, turn: T) -> None:
        """Take out everything of `turn` that no writer has taken yet."""
        kept = [
            item
            for item in self._items
            if not (isinstance(item, Packet | TurnOver) and item.turn is turn)
        ]
        self._items = deque(kept)
        self._bytes = sum(map(_size, kept))

    def shut(self) -> None:
        """Take out everything, and from now on take nothing in: the socket is lost."""
        self._shut = True
        self._items.clear()
        self._bytes = 0


def _size(item: object) -> int:
    if isinstance(item, Packet):
        return item.samples * BYTES_PER_SAMPLE
    return len(item.text) if isinstance(item, TextItem) else 0
