"""Waiting for what happens, and not for a time: on a busy machine, no time is long enough."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

import pytest

SECONDS = 60.0
"""Until a test gives up: long enough for a machine that is busy with other tests."""


async def until(holds: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Wait until `holds()` is true, or is an awaitable that gives something true; returns that."""
    async with asyncio.timeout(seconds):
        while True:
            found = holds()
            if inspect.isawaitable(found):
                found = await found
            if found:
                return found
            await asyncio.sleep(0.005)


def wait_until(holds: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Block until `holds()` is true; returns what it gave."""
    ends = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < ends, f"it did not happen within {seconds:g} s"
        time.sleep(0.005)
    return found


def skip_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the running event loop wait for nothing: when only timers are left, `time.monotonic` and
    with it the loop's clock go on to the next one at once.

    For tests whose code has no other thread or process: those would still take their time.
    """
    now = time.monotonic()
    selector = vars(asyncio.get_running_loop())["_selector"]
    select = selector.select

    def select_at_once(timeout: float | None) -> Any:
        nonlocal now
        if timeout is None:
            return select(None)
        ready = select(0)
        now += 0.0 if ready else max(0.0, timeout)
        return ready

    monkeypatch.setattr(selector, "select", select_at_once)
    monkeypatch.setattr(time, "monotonic", lambda: now)


async def settled(value: Callable[[], object], looks: int = 5) -> None:
    """Wait until `value()` is the same in so many looks, one after another: where nothing says that
    all is done."""
    last, same = value(), 0
    async with asyncio.timeout(SECONDS):
        while same < looks:
            await asyncio.sleep(0.005)
            now = value()
            last, same = now, same + 1 if now == last else 0


class Passes:
    """Counts the passes of the event loop in a `with` block: what happens at one count, nobody else
    had a turn in between."""

    count = 0

    def __enter__(self) -> None:
        self._task = asyncio.create_task(self._tick())

    def __exit__(self, *_: object) -> None:
        self._task.cancel()

    async def _tick(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)
