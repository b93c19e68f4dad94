"""TimeSlices: long work of many callers, a little of each in every pass of the event loop."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable

Step = Callable[[], bool]
"""Does a little work, and returns whether there is more."""

SLICE_SECONDS = 0.002
"""Longest time that such work takes in one pass; then everything else has its turn."""


class TimeSlices:
    """Shares the passes of the event loop among callers with long work, however many they are.

    Work with the same `key` shares one turn: a hundred sockets of an address delay others like one.
    """

    def __init__(self) -> None:
        self._steps: dict[Hashable, deque[Step]] = {}  # by key; the first key is next
        self._called = False  # whether a pass is scheduled
        self._spent = 0.0  # seconds used in this pass

    def add(self, step: Step, key: Hashable = None) -> None:
        """Call `step` in the coming passes, until it says that it is done."""
        self._steps.setdefault(key, deque()).append(step)
        self._call()

    def at_once(self, work: Callable[[], object]) -> bool:
        """Do a little work now, unless this pass has done enough: then return False."""
        if self._spent and self._spent >= SLICE_SECONDS:
            return False
        began = time.monotonic()
        try:
            work()
        finally:
            self._spend(began)
        return True

    async def take_turn(self, work: Callable[[], object], key: Hashable = None) -> None:
        """Do a little work, now or when its turn comes. Raises what it raises."""
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
        """Charge the time since `began` to this pass; the next pass starts at zero."""
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
