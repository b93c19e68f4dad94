"""Turns of an open loop: the clock alone starts them, whether or not earlier ones are done."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from realtime_tts.bench.meeting import sleep_until
from realtime_tts.bench.observation import Observation
from realtime_tts.bench.observed import Observed, span
from realtime_tts.bench.settings import BenchSettings
from realtime_tts.bench.target import Counter, Progress, Session, Target
from realtime_tts.bench.turns import clock, left
from realtime_tts.bench.workload import Arrival, TurnPlan
from realtime_tts.errors import RealtimeTTSError

_TURNS_AT_ONCE = 2_000
"""Beyond this many running turns the server is hopelessly behind, and so would we be."""


class OpenLoop:
    """Turns begin when they arrive and take the first free session, or open another.

    The clock alone starts them: no answer, however late, holds the next arrival back.
    """

    def __init__(
        self,
        plan: Iterator[Arrival],
        settings: BenchSettings,
        target: Target,
        progress: Progress,
        began: float,
    ) -> None:
        """`began` is the time, by `clock`, from which arrivals count."""
        self._plan, self._target, self._began = plan, target, began
        self._counter = Counter("turns", progress, settings.arrivals)
        self._free: list[Session] = []
        self._stack = contextlib.AsyncExitStack()
        self._running = self._most = 0
        self._seen: list[Observation] = []

    async def run(self) -> Observed:
        tasks = []
        async with self._stack:
            for arrival in self._plan:
                due = self._began + arrival.at
                await sleep_until(due)
                self._refuse_hopeless()
                tasks.append(asyncio.create_task(self._turn(arrival, due)))
            await asyncio.gather(*tasks)
        return Observed(self._seen, span(self._seen), self._most)

    async def _turn(self, arrival: Arrival, due: float) -> None:
        self._running += 1
        self._most = max(self._most, self._running)
        lag = clock() - due
        seen = await self._speak(arrival.turn)
        self._running -= 1
        if arrival.counts:
            seen.start_lag = lag
            self._seen.append(seen)
            self._counter.one()

    async def _speak(self, turn: TurnPlan) -> Observation:
        try:
            session = self._free.pop() if self._free else await self._open()
        except RealtimeTTSError as error:
            return Observation.failed(len(turn.text), error.code)
        seen = await session.speak(turn)
        # It is free once its listener has heard the turn: not to be waited for here.
        asyncio.get_running_loop().call_later(left(seen), self._free.append, session)
        return seen

    async def _open(self) -> Session:
        return await self._stack.enter_async_context(self._target.session())

    def _refuse_hopeless(self) -> None:
        if self._running >= _TURNS_AT_ONCE:
            raise RealtimeTTSError(
                f"{self._running} turns run at once: the server cannot keep up; lower the rate"
            )
