"""Alarm: a timer set to a moment that moves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from math import inf


class Alarm:
    """Calls `ring` at the moment it is set to, on the monotonic clock; it may ring too early.

    Moments mostly move later (with each text delta), so a later one does not touch the timer: it
    rings at the old moment, and the owner sets it again.
    """

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def set(self, due: float | None) -> None:
        """Ring at `due`; None and infinity do nothing."""
        if due is None or due == inf or (self._timer is not None and self._due <= due):
            return
        self.stop()
        self._due = due
        delay = max(0.0, due - time.monotonic())
        self._timer = asyncio.get_running_loop().call_later(delay, self._fire)

    def within(self, seconds: float) -> None:
        """Ring after this time, if it does not ring before; calling it again changes nothing."""
        self.set(time.monotonic() + seconds)

    def stop(self) -> None:
        """Do not ring, until it is set again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def release(self) -> None:
        """Never ring again, and forget the owner."""
        self.stop()
        self._ring = lambda: None

    def _fire(self) -> None:
        self._timer = None
        self._ring()
