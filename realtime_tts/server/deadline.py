"""Two timers: Deadline, armed and disarmed many times, and Alarm, set to a moment that moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Deadline:
    """Calls `expired` once, `seconds` after `arm`, unless disarmed. Arming again does nothing."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, seconds: float, expired: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._seconds = seconds
        self._expired = expired
        self._timer: asyncio.TimerHandle | None = None

    def arm(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(self._seconds, self._fire)

    def disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        self._expired()


class Alarm:
    """Calls `ring` at the moment it is set to, on the clock given; it may ring too early.

    Moments mostly move later (with each text delta), so a later one does not touch the timer: it
    rings at the old moment, and whoever hears it sets it again.
    """

    def __init__(self, clock: Callable[[], float], ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def set(self, due: float | None) -> None:
        """Ring at `due`; None asks for nothing."""
        if due is None or (self._timer is not None and self._due <= due):
            return
        self.stop()
        self._due = due
        delay = max(0.0, due - self._clock())
        self._timer = asyncio.get_running_loop().call_later(delay, self._fire)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def release(self) -> None:
        """Ring no more: whoever would hear it is forgotten."""
        self.stop()
        self._ring = _nothing

    def _fire(self) -> None:
        self._timer = None
        self._ring()


def _nothing() -> None:
    """Whoever would hear it is gone."""
