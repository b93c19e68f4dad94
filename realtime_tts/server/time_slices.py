"""TimeSlices: long work of many callers, a little of it in each pass of the event loop, in turn."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

Step = Callable[[], bool]
"""Does a little, and says whether there is more to do."""

SLICE_SECONDS = 0.002
"""After so long in one pass everything else on the event loop has its turn."""


class TimeSlices:
    """Shared by all who have such work: a pass takes no longer for their number."""

    def __init__(self) -> None:
        self._steps: deque[Step] = deque()
        self._called = False  # a pass is to come

    def add(self, step: Step) -> None:
        """Call `step` in the passes to come, until it says that it is done."""
        self._steps.append(step)
        self._call()

    def _call(self) -> None:
        if self._steps and not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        self._called = False
        until = time.monotonic() + SLICE_SECONDS
        try:
            while self._steps:
                step = self._steps.popleft()
                if step():
                    self._steps.append(step)
                if time.monotonic() >= until:
                    break
        finally:
            self._call()
