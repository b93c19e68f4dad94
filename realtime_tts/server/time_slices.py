"""TimeSlices: long work of many callers, a little of it in each pass of the event loop, in turn."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable

Step = Callable[[], bool]
"""Does a little, and says whether there is more to do."""

SLICE_SECONDS = 0.002
"""After so long in one pass everything else on the event loop has its turn."""


class TimeSlices:
    """Shared by all who have such work: a pass takes no longer for their number.

    Whoever has a `key` in common shares one turn: a hundred sockets of one address delay others no
    more than one does.
    """

    def __init__(self) -> None:
        self._steps: dict[Hashable, deque[Step]] = {}  # by key; the first has the next turn
        self._called = False  # a pass is to come
        self._spent = 0.0  # seconds of this pass

    def add(self, step: Step, key: Hashable = None) -> None:
        """Call `step` in the passes to come, until it says that it is done."""
        self._steps.setdefault(key, deque()).append(step)
        self._call()

    def at_once(self, work: Callable[[], object]) -> bool:
        """Do this little now, unless this pass of the event loop has done enough: then False, and
        it is to be added."""
        if self._spent and self._spent >= SLICE_SECONDS:
            return False
        began = time.monotonic()
        try:
            work()
        finally:
            self._spend(began)
        return True

    async def take_turn(self, work: Callable[[], object], key: Hashable = None) -> None:
        """Do this little, now or when it has its turn. Raises what it raises."""
        if self.at_once(work):
            return
        done = asyncio.get_running_loop().create_future()

        def step() -> bool:
            if not done.cancelled():
                try:
                    work()
                except BaseException as error:
                    done.set_exception(error)
                else:
                    done.set_result(None)
            return False

        self.add(step, key)
        await done

    def _spend(self, began: float) -> None:
        """Of this pass; the next begins with what it calls first."""
        if not self._spent:
            asyncio.get_running_loop().call_soon(self._begin)
        self._spent += max(time.monotonic() - began, 1e-9)

    def _begin(self) -> None:
        self._spent = 0.0

    def _call(self) -> None:
        if self._steps and not self._called:
            self._called = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        self._called = False
        began = time.monotonic()
        try:
            while self._steps:
                self._next()
                if self._spent + time.monotonic() - began >= SLICE_SECONDS:
                    break
        finally:
            self._spend(began)
            self._call()

    def _next(self) -> None:
        key, steps = next(iter(self._steps.items()))
        del self._steps[key]
        step = steps.popleft()
        if steps:
            self._steps[key] = steps  # behind the others
        if step():
            self._steps.setdefault(key, deque()).append(step)
