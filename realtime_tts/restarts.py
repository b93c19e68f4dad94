"""The delay before a process that has ended is started again: short at first, longer each time."""

from __future__ import annotations

import time
from collections import deque


class Restarts:
    """The ends of one process, in seconds: the `first` delay is doubled with each end within
    `window`, up to the `longest`."""

    def __init__(self, first: float, longest: float, window: float) -> None:
        self._first, self._longest, self._window = first, longest, window
        self._ends: deque[float] = deque()

    @property
    def ends(self) -> int:
        """How often the process has ended within the window."""
        return len(self._ends)

    def ended(self) -> float:
        """Note that the process has ended once more. Return the delay before its next start."""
        now = time.monotonic()
        self._ends.append(now)
        while self._ends[0] < now - self._window:
            self._ends.popleft()
        return min(self._first * 2.0 ** (self.ends - 1), self._longest)
