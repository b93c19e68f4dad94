"""The engine loop's source of commands: the streams of its fronts, and new fronts."""

from __future__ import annotations

import queue
import select
import socket
from collections.abc import Callable, Sequence

from realtime_tts.engine import wire
from realtime_tts.engine.fronts import Fronts
from realtime_tts.engine.line import Line
from realtime_tts.engine.link import Command

_LONGEST_SECONDS = 0.1
"""The longest single wait: only a message ends it sooner, not even `put`."""


class Downlink:
    """A `CommandQueue` that is read in the loop's own thread.

    A front that connects to `listener` joins `fronts`, on the line that `accept` makes, and gets
    `ready`. `stop` is called when the `parent` says so. With a thread between socket and loop, each
    turn would begin later by the time that one thread takes to wake another.
    """

    def __init__(
        self,
        listener: socket.socket,
        parent: Line,
        fronts: Fronts,
        ready: wire.Ready,
        *,
        accept: Callable[[], Line],
        stop: Callable[[], None],
    ) -> None:
        self._fronts, self._ready = fronts, ready
        self._accept, self._stop = accept, stop
        self._lines: dict[int, tuple[int | None, Line]] = {}  # and the front's number, by file
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
        self._add(None, parent)

    def get(self, timeout: float) -> Sequence[Command]:
        """Return commands like a queue's `get`, but raise queue.Empty sooner: it waits whole
        milliseconds, and at most `_LONGEST_SECONDS`."""
        return self._received(int(1_000 * min(timeout, _LONGEST_SECONDS)))

    def get_nowait(self) -> Sequence[Command]:
        """Return commands like a queue's `get_nowait`. Raises queue.Empty."""
        return self._received(0)

    def put(self, commands: Sequence[Command]) -> None:
        """Accept only an empty group: commands come from the fronts. A waiting loop wakes soon."""
        assert not commands, "commands come from the fronts"

    def _received(self, milliseconds: int) -> Sequence[Command]:
        found = self._poll.poll(milliseconds)
        if not found:
            raise queue.Empty
        commands: list[Command] = []
        for file, _ in found:
            if file in self._lines:
                commands += self._read(file)
            else:
                line = self._accept()
                self._add(self._fronts.join(line, self._ready), line)
        return commands

    def _add(self, front: int | None, line: Line) -> None:
        self._lines[line.fileno()] = front, line
        self._poll.register(line, select.POLLIN)

    def _read(self, file: int) -> list[Command]:
        front, line = self._lines[file]
        commands: list[Command] = []
        try:
            for message in line.received():
                if isinstance(message, wire.Stop):
                    self._stop()
                elif front is None:
                    commands += message.commands
                else:
                    commands += self._fronts.commands(front, message.commands)
        except EOFError:
            self._poll.unregister(file)
            del self._lines[file]
            return [] if front is None else self._fronts.leave(front)
        return commands
