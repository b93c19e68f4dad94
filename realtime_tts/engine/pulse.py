"""How a loop says that it moves, and for how long it has not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Protocol

_FORGETTING = 0.95
"""By so much a step makes the longest step before it count less."""


class LoopObserver(Protocol):
    """Told what the loop does; metrics implement it."""

    def step(self, seconds: float, prefills: int, decodes: int) -> None: ...

    def guard(self, reason: str) -> None: ...


class Pulse:
    """Of one engine loop; others may read it from any thread. `clock` in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.last_alive = clock()
        """When the loop last finished a step, or looked for work."""
        self.longest_step = 0.0
        """Of the recent steps, in seconds."""
        self._clock = clock
        self._resting = False

    def stepped(self, started: float) -> float:
        """A step is over that began then; how long it took."""
        self.last_alive = self._clock()
        seconds = self.last_alive - started
        self.longest_step = max(seconds, _FORGETTING * self.longest_step)
        return seconds

    @contextlib.contextmanager
    def resting(self) -> Iterator[None]:
        """There is nothing to do, meanwhile."""
        self.last_alive, self._resting = self._clock(), True
        try:
            yield
        finally:
            self.last_alive, self._resting = self._clock(), False

    def busy(self) -> float:
        """Seconds since the loop last moved; 0.0 while it has nothing to do."""
        return 0.0 if self._resting else max(0.0, self._clock() - self.last_alive)


class Age:
    """Tells for how long a loop has not moved; it is asked at every heartbeat.

    It is never longer than there were heartbeats, each `every` seconds: while the whole process is
    paused (a container, a virtual machine), clocks may go on, and nobody hangs.
    """

    def __init__(self, every: float) -> None:
        self._every = every
        self._last_alive = 0.0
        self._heartbeats = 0

    def at(self, now: float, last_alive: float) -> float:
        """Seconds since `last_alive`, both on one clock."""
        self._heartbeats = self._heartbeats + 1 if last_alive == self._last_alive else 1
        self._last_alive = last_alive
        return min(now - last_alive, self._heartbeats * self._every)
