"""The fronts of one engine process, and which utterances belong to which of them.

The engine knows utterances by their ids alone. Two fronts may choose the same id, so each id gets
its front's number on the way in, and loses it on the way out.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import count
from typing import Protocol

from msgspec.structs import replace

from realtime_tts.engine import wire
from realtime_tts.engine.link import Cancel, Command, Event, Last, Open


class FrontLine(Protocol):
    """The connection of an engine process to one front."""

    def send(self, message: wire.Up) -> None:
        """Send a message. Never blocks."""

    def close(self, linger: float = 0.0) -> None:
        """Stop sending; messages that wait are sent for at most `linger` more seconds."""


class Fronts:
    """All fronts except the parent. Thread-safe."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._lines: dict[int, FrontLine] = {}
        self._owners: dict[str, tuple[int, str]] = {}  # front and its own id, by the engine's id
        self._open: dict[int, int] = {}  # utterances, by front

    def join(self, line: FrontLine, ready: wire.Ready) -> int:
        """Add a front and send it `ready`; return its number, which no other front gets."""
        with self._lock:
            front = next(self._numbers)
            self._lines[front] = line
            self._open[front] = 0
        line.send(ready)
        return front

    def commands(self, front: int, commands: Sequence[Command]) -> list[Command]:
        """Return the front's commands with the engine's ids."""
        with self._lock:
            return [self._with_front(front, command) for command in commands]

    def publish(self, events: list[Event]) -> list[Event]:
        """Send each front its events of a step; return the parent's."""
        if not self._lines:
            return events
        shares: dict[int, list[Event]] = {}
        rest: list[Event] = []
        with self._lock:
            for event in events:
                owner = self._owners.get(event.id)
                if owner is None:  # the parent's, or of an utterance that was cancelled
                    rest.append(event)
                    continue
                front, id = owner
                if isinstance(event, Last):
                    self._forget(event.id)
                shares.setdefault(front, []).append(replace(event, id=id))
            for front, share in shares.items():
                self._lines[front].send(wire.Happened(share))
        return rest

    def heartbeat(self, heartbeat: wire.Heartbeat) -> None:
        """Send every front the heartbeat, with its count of other fronts' utterances."""
        with self._lock:
            total = sum(self._open.values())
            for front, line in self._lines.items():
                status = replace(heartbeat.status, others=total - self._open[front])
                line.send(replace(heartbeat, status=status))

    def leave(self, front: int) -> list[Command]:
        """Forget a front that has ended; return the commands that cancel its utterances."""
        with self._lock:
            self._lines.pop(front).close()
            left = [id for id, (owner, _) in self._owners.items() if owner == front]
            for id in left:
                self._forget(id)
            del self._open[front]
        return [Cancel(id) for id in left]

    def close(self, linger: float) -> None:
        """Close all lines. Messages that wait are sent for at most `linger` seconds each."""
        with self._lock:
            for line in self._lines.values():
                line.close(linger)
            self._lines.clear()

    def _with_front(self, front: int, command: Command) -> Command:
        id = f"{front}/{command.id}"
        if isinstance(command, Open):
            self._owners[id] = front, command.id
            self._open[front] += 1
        elif isinstance(command, Cancel) and id in self._owners:
            self._forget(id)
        return replace(command, id=id)

    def _forget(self, id: str) -> None:
        front, _ = self._owners.pop(id)
        self._open[front] -= 1
