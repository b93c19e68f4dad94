"""How a loop shows that it is alive, and for how long it has not been."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Protocol

_FORGETTING = 0.95
"""Decay applied to the recorded longest step at each new step, so that old outliers fade."""


class LoopObserver(Protocol):
    """Notified of what the loop does; metrics implement it."""

    def step(self, seconds: float, prefills: int, decodes: int) -> None: ...

    def guard(self, reason: str) -> None: ...


class Pulse:
    """The liveness of one engine loop, which any thread may read. `clock` in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.last_alive = clock()
        """When the loop last finished a step, or looked for work."""
        self.longest_step = 0.0
        """The longest of the recent steps, in seconds."""
        self._clock = clock
        self._resting = False

    def stepped(self, started: float) -> float:
        """Record the end of a step that began at `started`; return its seconds."""
        self.last_alive = self._clock()
        seconds = self.last_alive - started
        self.longest_step = max(seconds, _FORGETTING * self.longest_step)
        return seconds

    @contextlib.contextmanager
    def resting(self) -> Iterator[None]:
        """Mark the loop as idle within the block."""
        self.last_alive, self._resting = self._clock(), True
        try:
            yield
        finally:
            self.last_alive, self._resting = self._clock(), False

    def busy(self) -> float:
        """Return the seconds since the loop last moved; 0.0 while it is idle."""
        return 0.0 if self._resting else max(0.0, self._clock() - self.last_alive)


class Age:
    """Measures for how long a loop has not moved; to be asked at every heartbeat.

    The age is at most the time that the heartbeats since then take, each `every` seconds: while the
    whole process is paused (a container, a virtual machine), clocks may go on although nothing
    hangs.
    """

    def __init__(self, every: float) -> None:
        self._every = every
        self._last_alive = 0.0
        self._heartbeats = 0

    def at(self, now: float, last_alive: float) -> float:
        """Return the seconds since `last_alive`, both on one clock."""
        self._heartbeats = self._heartbeats + 1 if last_alive == self._last_alive else 1
        self._last_alive = last_alive
        return min(now - last_alive, self._heartbeats * self._every)
