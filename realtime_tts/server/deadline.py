"""Deadline: a timer that is armed and disarmed many times."""

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
