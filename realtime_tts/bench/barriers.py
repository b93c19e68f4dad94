"""Barriers at which the sessions of a load wait for each other, also across client processes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from realtime_tts.bench.observation import clock

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a load that one client process handles: every `of`-th session or arrival,
    beginning with number `index`."""

    index: int = 0
    of: int = 1

    def of_many(self, items: Iterable[T]) -> Iterator[T]:
        """Return the `items` in this process's share."""
        return islice(items, self.index, None, self.of)


ProcessBarrier = Callable[[], Awaitable[float]]
"""Waits until every client process of a pass has arrived; returns when, by `clock`, all of them go
on."""


async def no_others() -> float:
    """Return at once: the `ProcessBarrier` of a load generator that is a single process."""
    return clock()


class BurstBarrier:
    """Lets all sessions begin each of their turns together."""

    def __init__(self, sessions: int, barrier: ProcessBarrier) -> None:
        """`sessions`: number of sessions in this process."""
        self._barrier = asyncio.Barrier(sessions)
        self._processes = barrier
        self._due = 0.0

    async def begin(self) -> float:
        """Wait for all others; return when, by `clock`, all begin, which is now."""
        if await self._barrier.wait() == 0:
            self._due = await self._processes()
        await self._barrier.wait()
        await sleep_until(self._due)
        return self._due


class CompletionCounter:
    """Tells sessions when every session of every process has spoken the turns that count."""

    def __init__(self, sessions: int, barrier: ProcessBarrier) -> None:
        """`sessions`: number of sessions in this process."""
        self._missing, self._processes = sessions, barrier
        self._over = asyncio.Event()

    async def one_more(self) -> None:
        """Count a session that has spoken its turns; returns when all sessions have."""
        self._missing -= 1
        if self._missing == 0:
            await self._processes()
            self._over.set()
        await self._over.wait()


async def sleep_until(due: float) -> None:
    """Sleep until `due`, by `clock`."""
    if (wait := due - clock()) > 0:
        await asyncio.sleep(wait)
