"""Carries a load out: sessions that speak one turn after another, or turns that arrive."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from realtime_tts.bench.deltas import DeltaKind, DeltaTiming
from realtime_tts.bench.observation import Observation
from realtime_tts.bench.settings import BenchSettings, Level, Mode
from realtime_tts.bench.target import Session, Target
from realtime_tts.bench.turns import clock
from realtime_tts.bench.workload import Arrival, TurnPlan, arrivals, session_turns
from realtime_tts.errors import RealtimeTTSError

_TURNS_AT_ONCE = 2_000
"""Open loop: beyond this many running turns the server is hopelessly behind, and so would we be."""

Progress = Callable[[str, int, int | None], None]
"""(what, done, total); total None where time, not a count, ends it."""


@dataclass(slots=True)
class Observed:
    """What one pass over a level brought. `seconds`: from the first text to the last packet."""

    turns: list[Observation]
    seconds: float
    sessions: int
    """Most turns at the same time."""
    lags: list[float] = field(default_factory=list)
    """Open loop: by how much we ourselves began each turn too late."""


async def run_level(
    level: Level, settings: BenchSettings, target: Target, progress: Progress
) -> Observed:
    """The paced pass: turns as agents and listeners make them, one after the other is heard."""
    if level.mode is Mode.OPEN:
        return await _OpenLoop(arrivals(settings, level.rate), settings, target, progress).run()
    return await _sessions(level, settings, target, progress)


async def run_unpaced(
    level: Level, settings: BenchSettings, target: Target, progress: Progress
) -> Observed:
    """Whole texts, no lead cap, no pauses: the server goes as fast as it can."""
    whole = replace(settings, timing=DeltaTiming(DeltaKind.WHOLE), turns=settings.rtf_turns)
    fast = replace(whole, seconds=None, pause=0.0, interrupts=0.0, warm_up=0)
    closed = replace(level, mode=Mode.CLOSED)
    return await _sessions(closed, fast, target, progress, paced=False)


async def _sessions(
    level: Level,
    settings: BenchSettings,
    target: Target,
    progress: Progress,
    *,
    paced: bool = True,
) -> Observed:
    async with contextlib.AsyncExitStack() as stack:
        speakers = []
        for number in range(level.sessions):
            session = await stack.enter_async_context(target.session(paced=paced))
            turns = session_turns(settings, level.mode, number)
            speakers.append(_Speaker(session, turns, paced=paced))
        await asyncio.gather(*(each.turns(settings.warm_up) for each in speakers))
        label = "turns" if paced else "speed"
        total = None if settings.seconds else level.sessions * settings.turns
        counter = _Counter(label, progress, total)
        until = None if settings.seconds is None else clock() + settings.seconds
        each_turns = await asyncio.gather(
            *(each.turns(settings.turns, until, counter) for each in speakers)
        )
    turns_seen = [turn for some in each_turns for turn in some]
    return Observed(turns_seen, _span(turns_seen), level.sessions)


class _Speaker:
    """One session and its turns."""

    def __init__(self, session: Session, plans: Iterator[TurnPlan], *, paced: bool) -> None:
        self._session, self._plans, self._paced = session, plans, paced

    async def turns(
        self, count: int, until: float | None = None, counter: _Counter | None = None
    ) -> list[Observation]:
        """Speak so many turns, or as many as begin before `until`."""
        seen: list[Observation] = []
        while len(seen) < count if until is None else clock() < until:
            plan = next(self._plans)
            if self._paced:
                await asyncio.sleep(plan.pause)
            seen.append(await self._session.speak(plan))
            if counter is not None:
                counter.one()
            await asyncio.sleep(seen[-1].retry_after)
            if self._paced:
                await _listen(seen[-1])
        return seen


class _OpenLoop:
    """Turns begin when they arrive and take the first free session, or open another.

    The clock alone starts them: no answer, however late, holds the next arrival back.
    """

    def __init__(
        self,
        plan: Iterator[Arrival],
        settings: BenchSettings,
        target: Target,
        progress: Progress,
    ) -> None:
        self._plan, self._target = plan, target
        self._counter = _Counter("turns", progress, settings.arrivals)
        self._free: list[Session] = []
        self._stack = contextlib.AsyncExitStack()
        self._running = self._most = 0
        self._seen: list[Observation] = []
        self._lags: list[float] = []

    async def run(self) -> Observed:
        tasks = []
        async with self._stack:
            began = clock()
            for arrival in self._plan:
                due = began + arrival.at
                if (wait := due - clock()) > 0:
                    await asyncio.sleep(wait)
                self._refuse_hopeless()
                tasks.append(asyncio.create_task(self._turn(arrival, due)))
            await asyncio.gather(*tasks)
        return Observed(self._seen, _span(self._seen), self._most, self._lags)

    async def _turn(self, arrival: Arrival, due: float) -> None:
        self._running += 1
        self._most = max(self._most, self._running)
        lag = clock() - due
        seen = await self._speak(arrival.turn)
        self._running -= 1
        if arrival.counts:
            self._seen.append(seen)
            self._lags.append(lag)
            self._counter.one()

    async def _speak(self, turn: TurnPlan) -> Observation:
        try:
            session = self._free.pop() if self._free else await self._open()
        except RealtimeTTSError as error:
            return Observation.failed(len(turn.text), error.code)
        seen = await session.speak(turn)
        # It is free once its listener has heard the turn: not to be waited for here.
        asyncio.get_running_loop().call_later(_left(seen), self._free.append, session)
        return seen

    async def _open(self) -> Session:
        return await self._stack.enter_async_context(self._target.session())

    def _refuse_hopeless(self) -> None:
        if self._running >= _TURNS_AT_ONCE:
            raise RealtimeTTSError(
                f"{self._running} turns run at once: the server cannot keep up; lower the rate"
            )


class _Counter:
    """Counts measured turns for the progress display."""

    def __init__(self, what: str, progress: Progress, total: int | None) -> None:
        self._what, self._progress, self._total = what, progress, total
        self._done = 0
        progress(what, 0, total)

    def one(self) -> None:
        self._done += 1
        self._progress(self._what, self._done, self._total)


async def _listen(seen: Observation) -> None:
    """Wait until the listener has heard the turn: an earlier next one would have time to spare."""
    await asyncio.sleep(_left(seen))


def _left(seen: Observation) -> float:
    """Seconds until the listener has heard the turn; none if it was cut off or failed."""
    heard = seen.interrupt_seconds is None and seen.error is None
    return max(0.0, seen.heard_until - clock()) if heard else 0.0


def _span(turns: list[Observation]) -> float:
    ends = [turn.trace.packets[-1][0] for turn in turns if turn.trace.packets]
    return max(ends) - min(turn.trace.asked_at for turn in turns) if ends else 0.0
