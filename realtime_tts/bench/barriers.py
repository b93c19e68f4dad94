"""Where the sessions of a load wait for each other, also across client processes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, TypeVar

from realtime_tts.bench.observation import clock

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a load that one client process carries: every `of`-th session or arrival, from
    number `index` on."""

    index: int = 0
    of: int = 1

    def of_many(self, items: Iterable[T]) -> Iterator[T]:
        """Give those of `items` that are this process's share."""
        return islice(items, self.index, None, self.of)


class Meeting(Protocol):
    """Where all client processes of a pass wait for each other."""

    async def meet(self) -> float:
        """Wait until every process is here; returns when, by `clock`, all of them go on."""


class Alone:
    """The `Meeting` of a load generator that is one process: nobody is waited for."""

    async def meet(self) -> float:
        return clock()


class Rounds:
    """Turns that all sessions begin together."""

    def __init__(self, sessions: int, meeting: Meeting) -> None:
        """`sessions` counts those of this process only."""
        self._barrier = asyncio.Barrier(sessions)
        self._meeting = meeting
        self._due = 0.0

    async def begin(self) -> float:
        """Wait for all others; returns when, by `clock`, all begin, which is now."""
        if await self._barrier.wait() == 0:
            self._due = await self._meeting.meet()
        await self._barrier.wait()
        await sleep_until(self._due)
        return self._due


class Enough:
    """Tells sessions when every session of every process has spoken the turns that count."""

    def __init__(self, sessions: int, meeting: Meeting) -> None:
        """`sessions` counts those of this process only."""
        self._missing, self._meeting = sessions, meeting
        self._over = asyncio.Event()

    async def one_more(self) -> None:
        """Count a session that has spoken its turns; returns when all sessions have."""
        self._missing -= 1
        if self._missing == 0:
            await self._meeting.meet()
            self._over.set()
        await self._over.wait()


async def sleep_until(due: float) -> None:
    """Sleep until `due`, by `clock`."""
    if (wait := due - clock()) > 0:
        await asyncio.sleep(wait)
