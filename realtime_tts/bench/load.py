"""The two loads: closed (so many sessions) and open (so many turns a second)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from realtime_tts.bench.deltas import DeltaKind, DeltaTiming, schedule
from realtime_tts.bench.observation import Observation
from realtime_tts.bench.prompts import PromptPicker
from realtime_tts.bench.settings import BenchSettings, Level, Mode
from realtime_tts.bench.turns import clock, speak
from realtime_tts.client import Backoff, RealtimeTTS
from realtime_tts.errors import RealtimeTTSError

_EARLIEST_CUT, _LATEST_CUT = 0.2, 2.0
_SESSIONS_AT_ONCE = 2_000
"""Open loop: beyond this many running turns the server is hopelessly behind, and so would we be."""
_RECONNECT_SECONDS = 5.0

Progress = Callable[[str, int, int | None], None]
"""(what, done, total); total None where time, not a count, ends it."""


@dataclass(slots=True)
class Observed:
    """What one pass over a level brought. `seconds`: from the first text to the last packet."""

    turns: list[Observation]
    seconds: float
    sessions: int
    """Most turns at the same time."""


async def run_level(level: Level, settings: BenchSettings, progress: Progress) -> Observed:
    """The paced pass: turns as agents and listeners make them, one after the other is heard."""
    if level.mode is Mode.OPEN:
        return await _OpenLoop(level.rate, settings, progress).run()
    return await _closed_loop(level.sessions, settings, progress)


async def run_unpaced(level: Level, settings: BenchSettings, progress: Progress) -> Observed:
    """Whole texts, no lead cap, no pauses: the server goes as fast as it can."""
    whole = replace(settings, timing=DeltaTiming(DeltaKind.WHOLE), turns=settings.rtf_turns)
    fast = replace(whole, seconds=None, pause=0.0, interrupts=0.0, warm_up=0)
    return await _closed_loop(level.sessions, fast, progress, paced=False)


async def _closed_loop(
    sessions: int, settings: BenchSettings, progress: Progress, *, paced: bool = True
) -> Observed:
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(_client(settings)) for _ in range(sessions)]
        if not paced:
            # As far ahead as the server lets anybody: longer than the longest prompt's speech.
            for tts in clients:
                await tts.configure(lead_ms=tts.ready.limits.max_lead_ms)
        speakers = [
            _Speaker(tts, settings, number, paced=paced) for number, tts in enumerate(clients)
        ]
        await asyncio.gather(*(each.turns(settings.warm_up) for each in speakers))
        label = "turns" if paced else "speed"
        counter = _Counter(label, progress, None if settings.seconds else sessions * settings.turns)
        until = None if settings.seconds is None else clock() + settings.seconds
        each_turns = await asyncio.gather(
            *(each.turns(settings.turns, until, counter) for each in speakers)
        )
    turns = [turn for some in each_turns for turn in some]
    return Observed(turns, _span(turns), sessions)


class _Speaker:
    """One session of the closed loop."""

    def __init__(
        self, tts: RealtimeTTS, settings: BenchSettings, number: int, *, paced: bool
    ) -> None:
        self._tts = tts
        self._settings = settings
        self._paced = paced
        self._random = Random(f"{settings.seed}:{number}")
        self._prompts = PromptPicker(self._random.getrandbits(32), settings.prompts)

    async def turns(
        self, count: int, until: float | None = None, counter: _Counter | None = None
    ) -> list[Observation]:
        """Speak so many turns, or as many as begin before `until`."""
        seen: list[Observation] = []
        while len(seen) < count if until is None else clock() < until:
            text = self._prompts.next()
            seen.append(await _one_turn(self._tts, text, self._settings, self._random))
            if counter is not None:
                counter.one()
            await asyncio.sleep(seen[-1].retry_after)
            if self._paced:
                await _listen(seen[-1])
                await asyncio.sleep(self._random.expovariate(1.0) * self._settings.pause)
        return seen


class _OpenLoop:
    """Turns begin by a Poisson process and take the first free session, or open another."""

    def __init__(self, rate: float, settings: BenchSettings, progress: Progress) -> None:
        self._rate = rate
        self._settings = settings
        self._random = Random(settings.seed)
        self._prompts = PromptPicker(settings.seed, settings.prompts)
        self._counter = _Counter("turns", progress, None)
        self._free: list[RealtimeTTS] = []
        self._all: list[RealtimeTTS] = []
        self._running = 0
        self._most = 0
        self._seen: list[Observation] = []

    async def run(self) -> Observed:
        try:
            return await self._run()
        finally:
            await asyncio.gather(*(tts.close() for tts in self._all))

    async def _run(self) -> Observed:
        seconds = self._settings.seconds or 30.0
        warm_until = clock() + (seconds * 0.1 if self._settings.warm_up else 0.0)
        until = warm_until + seconds
        tasks: set[asyncio.Task[None]] = set()
        due = clock()
        while (due := due + self._random.expovariate(self._rate)) < until:
            if (wait := due - clock()) > 0:
                await asyncio.sleep(wait)
            self._refuse_hopeless()
            text = self._prompts.next()
            task = asyncio.create_task(self._turn(text, counts=due >= warm_until))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
        return Observed(self._seen, _span(self._seen), self._most)

    async def _turn(self, text: str, *, counts: bool) -> None:
        self._running += 1
        self._most = max(self._most, self._running)
        tts = self._free.pop() if self._free else self._new_client()
        random = Random(self._random.getrandbits(64))
        seen = await _one_turn(tts, text, self._settings, random)
        self._running -= 1
        if counts:
            self._seen.append(seen)
            self._counter.one()
        await _listen(seen)
        self._free.append(tts)

    def _refuse_hopeless(self) -> None:
        if self._running >= _SESSIONS_AT_ONCE:
            raise RealtimeTTSError(
                f"{self._running} turns run at once: the server cannot keep up with "
                f"{self._rate:g} turns/s; lower the rate"
            )

    def _new_client(self) -> RealtimeTTS:
        tts = _client(self._settings)
        self._all.append(tts)
        return tts


class _Counter:
    """Counts measured turns for the progress display."""

    def __init__(self, what: str, progress: Progress, total: int | None) -> None:
        self._what = what
        self._progress = progress
        self._total = total
        self._done = 0
        progress(what, 0, total)

    def one(self) -> None:
        self._done += 1
        self._progress(self._what, self._done, self._total)


def _client(settings: BenchSettings) -> RealtimeTTS:
    patience = Backoff(give_up_after=_RECONNECT_SECONDS)
    return RealtimeTTS(
        settings.server, api_key=settings.api_key, backoff=patience, **settings.options
    )


async def _one_turn(
    tts: RealtimeTTS, text: str, settings: BenchSettings, random: Random
) -> Observation:
    cut = random.random() < settings.interrupts
    cut_after = random.uniform(_EARLIEST_CUT, _LATEST_CUT) if cut else None
    return await speak(tts, schedule(text, settings.timing, random), cut_after)


async def _listen(seen: Observation) -> None:
    """Wait until the listener has heard the turn: an earlier next one would have time to spare."""
    if seen.interrupt_seconds is None and seen.error is None:
        await asyncio.sleep(max(0.0, seen.heard_until - clock()))


def _span(turns: list[Observation]) -> float:
    ends = [turn.trace.packets[-1][0] for turn in turns if turn.trace.packets]
    return max(ends) - min(turn.trace.asked_at for turn in turns) if ends else 0.0
