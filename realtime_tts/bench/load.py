"""Carries out a load, or one client process's share of it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from realtime_tts.bench.barriers import (
    BurstBarrier,
    CompletionCounter,
    ProcessBarrier,
    Share,
    no_others,
    sleep_until,
)
from realtime_tts.bench.deltas import DeltaKind, DeltaTiming
from realtime_tts.bench.observation import Observation, Observed, busy_window, clock, left, span
from realtime_tts.bench.settings import BenchSettings, Level, Mode
from realtime_tts.bench.workload import (
    Arrival,
    Counter,
    Progress,
    Speak,
    Target,
    TurnPlan,
    arrivals,
    session_turns,
)
from realtime_tts.errors import RealtimeTTSError


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over a level, with the share of it that is carried out in this process."""

    level: Level
    settings: BenchSettings
    target: Target
    progress: Progress
    paced: bool = True
    share: Share = Share()
    barrier: ProcessBarrier = no_others


async def carry_out(given: Pass) -> Observed:
    """Carry out a pass, or this process's share of it, and return what was observed.

    Paced, turns come as agents and listeners make them, each when the one before was heard.
    Unpaced, texts come whole, without lead cap and pauses, and the server goes as fast as it can.
    """
    if not given.paced:
        return await _unpaced(given)
    if given.level.mode is Mode.OPEN:
        return await _open_loop(given)
    return await _sessions(given)


async def _open_loop(given: Pass) -> Observed:
    began = await given.barrier()
    async with watched() as lateness:
        seen = await OpenLoop(given, began).run()
    return replace(seen, late=lateness.late, cpu=lateness.cpu)


async def _sessions(given: Pass) -> Observed:
    settings, barrier = given.settings, given.barrier
    async with _open_sessions(given, settings) as sessions:
        bursts = None
        if given.level.mode is Mode.BURST:
            bursts = BurstBarrier(len(sessions), barrier)
        await barrier()  # a server that is full by warm-ups would refuse further sessions
        await asyncio.gather(*(each.turns(settings.warm_up, bursts=bursts) for each in sessions))
        total = None if settings.seconds else len(sessions) * settings.turns
        counter = Counter("turns", given.progress, total)
        began = await barrier()
        until = None if settings.seconds is None else began + settings.seconds
        apart = 0.0 if bursts else settings.spread / given.level.sessions

        async def begin(number: int, session: _SpeakingSession) -> list[Observation]:
            await sleep_until(began + number * apart)
            return await session.turns(settings.turns, until, counter, bursts)

        numbers = given.share.of_many(range(given.level.sessions))
        async with watched() as lateness:
            each_turns = await asyncio.gather(*map(begin, numbers, sessions))
    turns = [turn for some in each_turns for turn in some]
    return Observed(turns, span(turns), given.level.sessions, late=lateness.late, cpu=lateness.cpu)


async def _unpaced(given: Pass) -> Observed:
    settings = replace(
        given.settings, timing=DeltaTiming(DeltaKind.WHOLE), pause=0.0, interrupts=0.0
    )
    closed = replace(given, level=replace(given.level, mode=Mode.CLOSED))
    async with _open_sessions(closed, settings) as sessions:
        number = settings.rtf_turns
        counter = Counter("speed", given.progress, len(sessions) * number)
        completion = CompletionCounter(len(sessions), given.barrier)
        await sleep_until(await given.barrier())
        async with watched() as lateness:
            pairs = await asyncio.gather(
                *(each.turns_and_fillers(number, completion, counter) for each in sessions)
            )
    turns = [turn for some, _ in pairs for turn in some]
    return Observed(
        turns,
        span(turns),
        given.level.sessions,
        fillers=[turn for _, some in pairs for turn in some],
        busy=busy_window([some for some, _ in pairs]),
        late=lateness.late,
        cpu=lateness.cpu,
    )


@contextlib.asynccontextmanager
async def _open_sessions(
    given: Pass, settings: BenchSettings
) -> AsyncIterator[list[_SpeakingSession]]:
    async with contextlib.AsyncExitStack() as stack:
        sessions = []
        for number in given.share.of_many(range(given.level.sessions)):
            speak = await stack.enter_async_context(given.target.session(paced=given.paced))
            turns = session_turns(settings, given.level.mode, number)
            sessions.append(_SpeakingSession(speak, turns, paced=given.paced))
        yield sessions


class _SpeakingSession:
    """A session with the turns to be spoken in it."""

    def __init__(self, speak: Speak, plans: Iterator[TurnPlan], *, paced: bool) -> None:
        self._hear, self._plans, self._paced = speak, plans, paced

    async def turns(
        self,
        number: int,
        until: float | None = None,
        counter: Counter | None = None,
        bursts: BurstBarrier | None = None,
    ) -> list[Observation]:
        """Speak `number` turns, or as many as begin before `until`."""
        seen: list[Observation] = []
        for done in count():
            if done >= number if until is None else clock() >= until and bursts is None:
                break
            plan = next(self._plans)
            if self._paced:
                await asyncio.sleep(plan.pause)
            due = None if bursts is None else await bursts.begin()
            if due is not None and until is not None and due >= until:
                break  # the same burst for every session of every process
            seen.append(await self._speak(plan, due))
            if counter is not None:
                counter.one()
        return seen

    async def turns_and_fillers(
        self, number: int, completion: CompletionCounter, counter: Counter
    ) -> tuple[list[Observation], list[Observation]]:
        """Speak `number` turns, then others, to keep the load constant until all sessions have
        spoken their `number` of turns."""
        counted = await self.turns(number, counter=counter)
        all_done = asyncio.create_task(completion.one_more())
        await asyncio.sleep(0)  # let the counter see whether this session was the last
        fillers: list[Observation] = []
        while not all_done.done() and (not fillers or fillers[-1].error is None):
            fillers += await self.turns(1)
        await all_done
        return counted, fillers

    async def _speak(self, plan: TurnPlan, due: float | None) -> Observation:
        seen = await self._hear(plan)
        if due is not None:
            seen.start_lag = seen.trace.asked_at - due
        await asyncio.sleep(seen.retry_after)
        if self._paced:
            # Until the listener has heard it: the next turn's deadline would otherwise be later.
            await asyncio.sleep(left(seen))
        return seen


_EVERY = 0.01


@dataclass(slots=True)
class Lateness:
    """How late the load generator itself is: a slow client must not be taken for a slow server.

    `late`: by how many seconds each timer, set every 10 ms, woke too late. Packets that arrived in
    the meantime were seen at most that much too late. `cpu`: share of one core that this process
    used.
    """

    late: list[float] = field(default_factory=list)
    cpu: float = 0.0


@contextlib.asynccontextmanager
async def watched() -> AsyncIterator[Lateness]:
    """Measure the lateness of this process while a block runs; it is complete after the block."""
    seen = Lateness()
    cpu, wall = time.process_time(), clock()
    task = asyncio.create_task(_watch(seen.late))
    try:
        yield seen
    finally:
        task.cancel()
        seen.cpu = (time.process_time() - cpu) / (clock() - wall)


async def _watch(late: list[float]) -> None:
    while True:
        due = clock() + _EVERY
        await asyncio.sleep(_EVERY)
        late.append(max(0.0, clock() - due))


_TURNS_AT_ONCE = 2_000
"""The most running turns: with more the server is hopelessly behind, and so is the client."""


class OpenLoop:
    """Turns begin when they arrive and take the first free session, or open another one.

    The clock alone starts them: no answer, however late, delays the next arrival.
    """

    def __init__(self, given: Pass, began: float) -> None:
        """`began`: the time, by `clock`, from which arrivals count."""
        self._plan = given.share.of_many(arrivals(given.settings, given.level.rate))
        self._target, self._began = given.target, began
        self._counter = Counter("turns", given.progress, given.settings.arrivals)
        self._free: list[Speak] = []
        self._stack = contextlib.AsyncExitStack()
        self._running = self._most = 0
        self._seen: list[Observation] = []

    async def run(self) -> Observed:
        tasks = []
        async with self._stack:
            for arrival in self._plan:
                due = self._began + arrival.at
                await sleep_until(due)
                if self._running >= _TURNS_AT_ONCE:
                    why = f"{self._running} turns run at once: the server cannot keep up"
                    raise RealtimeTTSError(f"{why}; lower the rate")
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
            if self._free:
                speak = self._free.pop()
            else:
                speak = await self._stack.enter_async_context(self._target.session())
        except RealtimeTTSError as error:
            return Observation.failed(len(turn.text), error.code)
        seen = await speak(turn)
        # The session is free once its listener has heard the turn, which is not awaited here.
        asyncio.get_running_loop().call_later(left(seen), self._free.append, speak)
        return seen
