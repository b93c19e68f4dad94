"""The engine's end of a front's stream, and sending what a front has not taken at once."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Sequence

from realtime_tts.engine import wire
from realtime_tts.engine.stream import Stream


class Line:
    """Sends messages to a front, from any thread, and never waits for it. What the front does not
    take at once leaves with a `Waiting.send`. How much can wait is bounded by how far the engine
    runs ahead of its listeners."""

    def __init__(self, end: socket.socket, waiting: Waiting) -> None:
        self._stream, self._waiting = Stream(end), waiting
        self._lock = threading.Lock()
        self._waits = self._closed = False

    def fileno(self) -> int:
        return self._stream.fileno()

    def send(self, message: wire.Up) -> None:
        """Send a message; does nothing once the line is closed."""
        data = wire.encode(message)
        with self._lock:
            if not self._closed and not self._stream.send(data) and not self._waits:
                self._waits = True
                self._waiting.add(self)

    def flush(self) -> None:
        """Send as much of what waits as the front takes."""
        with self._lock:
            if self._waits and self._stream.flush():
                self._leave()

    def received(self) -> Sequence[wire.Down]:
        """Return the front's next messages. For one thread. Raises EOFError once it has ended."""
        try:
            return list(map(wire.decode_down, self._stream.received()))
        except BlockingIOError:
            return ()

    def close(self, linger: float = 0.0) -> None:
        """Stop sending; messages that wait are sent for at most `linger` seconds. Idempotent."""
        with self._lock:
            if self._waits:
                self._leave()
            self._closed = True
            self._stream.close(linger)

    def _leave(self) -> None:
        self._waits = False
        self._waiting.remove(self)


class Waiting:
    """The lines of all fronts on which messages wait. Thread-safe, as selectors are on Unix: the
    kernel takes changes while another thread waits."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def add(self, line: Line) -> None:
        self._selector.register(line, selectors.EVENT_WRITE)

    def remove(self, line: Line) -> None:
        self._selector.unregister(line)

    def send(self, seconds: float) -> None:
        """For `seconds`, send messages that wait as the fronts take them."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            for key, _ in self._selector.select(left):
                line = key.fileobj
                assert isinstance(line, Line)
                line.flush()
