"""The load generator in several processes: one that plays hundreds of listeners would be late.

A client process is a child of the load generator (see child_process.py); it carries out jobs and
sends what it saw. The messages are pickles of the classes below: nothing that a stranger sent is
read here.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from realtime_tts.bench.load import Pass, carry_out
from realtime_tts.bench.machine import usable_cores
from realtime_tts.bench.meeting import Share
from realtime_tts.bench.observation import Observed, clock, merged
from realtime_tts.bench.settings import BenchSettings, Level, Mode
from realtime_tts.bench.sockets import SocketTarget
from realtime_tts.bench.workload import Progress
from realtime_tts.child_process import ChildProcess, Parent
from realtime_tts.errors import RealtimeTTSError
from realtime_tts.garbage import calm_garbage_collector


@dataclass(frozen=True, slots=True)
class Job:
    """A message to a client process: it is to carry out its share of a pass."""

    level: Level
    settings: BenchSettings
    share: Share
    paced: bool


@dataclass(frozen=True, slots=True)
class Here:
    """A message from a client process: all of its sessions wait to go on."""


@dataclass(frozen=True, slots=True)
class GoOn:
    """A message to all client processes, sent when every one is `Here`: they are to go on when
    `clock` shows `at`."""

    at: float


@dataclass(frozen=True, slots=True)
class Done:
    """A message from a client process: it has spoken so many turns."""

    what: str
    turns: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A message from a client process: the pass cannot go on, and why."""

    message: str


Answer = Here | Done | Failed | Observed


class _Meeting:
    """The `Meeting` with the other client processes, through the load generator."""

    def __init__(self, answer: Callable[[Answer], None]) -> None:
        self._answer = answer
        self._go: asyncio.Future[float] | None = None

    async def meet(self) -> float:
        self._go = asyncio.get_running_loop().create_future()
        self._answer(Here())
        return await self._go

    def go_on(self, at: float) -> None:
        assert self._go is not None, "the parent answers, it does not begin"
        self._go.set_result(at)


async def _serve(parent: Parent) -> None:
    """Carry out one job after the other, until the parent kills this process or is gone."""
    messages: asyncio.Queue[Job | GoOn] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def heard(message: bytes) -> None:
        loop.call_soon_threadsafe(messages.put_nowait, pickle.loads(message))

    def answer(message: Answer) -> None:
        parent.send(pickle.dumps(message))

    parent.listen(heard, at_end=lambda: None)
    calm_garbage_collector()
    meeting = _Meeting(answer)
    async with asyncio.TaskGroup() as jobs:
        while True:
            match await messages.get():
                case Job() as job:
                    meeting = _Meeting(answer)
                    jobs.create_task(_carry_out(job, meeting, answer))
                case GoOn(at):
                    meeting.go_on(at)


async def _carry_out(job: Job, meeting: _Meeting, answer: Callable[[Answer], None]) -> None:
    def progress(what: str, done: int, total: int | None) -> None:
        answer(Done(what, done))

    target = SocketTarget(job.settings)
    given = Pass(job.level, job.settings, target, progress, job.paced, job.share, meeting)
    try:
        answer(await carry_out(given))
    except RealtimeTTSError as error:
        answer(Failed(f"{error.code}: {error}"))
    except Exception as error:
        answer(Failed(f"{type(error).__name__}: {error}"))
        raise


def main(parent: Parent) -> None:
    """Serve one load generator, the parent."""
    asyncio.run(_serve(parent))


SESSIONS_PER_PROCESS = 32
_TURN_SECONDS = 5.0
"""Open loop: a turn's length, to guess how many run at once."""
_NOTICE_SECONDS = 0.01
"""How long after the last process has arrived at a meeting all of them go on."""


class ClientProcessFailed(RealtimeTTSError, code="client_process_failed"):
    """One of the load generator's own processes could not go on; the message says why."""


def processes_for(level: Level, settings: BenchSettings) -> int:
    """How many client processes a level gets: as many as the settings ask for, or one for every 32
    sessions, but no more than half of the cores.

    There are never more processes than sessions, so that none is idle.
    """
    sessions = level.sessions
    if level.mode is Mode.OPEN:
        sessions = ceil(level.rate * _TURN_SECONDS)
    wanted = settings.client_processes
    if wanted is None:
        wanted = min(ceil(sessions / SESSIONS_PER_PROCESS), max(1, usable_cores() // 2))
    return max(1, min(wanted, sessions))


class ClientPool:
    """Client processes, started when first needed. Use it in `async with`, which ends them."""

    def __init__(self) -> None:
        self._processes: list[ChildProcess] = []

    async def __aenter__(self) -> ClientPool:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stop()

    async def carry_out(
        self, level: Level, settings: BenchSettings, progress: Progress, *, paced: bool = True
    ) -> Observed:
        """Carry out one pass in as many as it needs. Raises ClientProcessFailed."""
        number = processes_for(level, settings)
        while len(self._processes) < number:
            self._processes.append(await ChildProcess.start(__name__))
        crew = _Crew(self._processes[:number], progress, _total(level, settings, paced))
        jobs = [Job(level, settings, Share(index, number), paced) for index in range(number)]
        try:
            parts = await crew.run(jobs)
        except BaseException:
            await self._stop()  # the others wait for the one that failed
            raise
        return merged(parts, 0 if level.mode is Mode.OPEN and paced else level.sessions)

    async def _stop(self) -> None:
        """End all of them; the next pass starts others."""
        ending, self._processes = self._processes, []
        await asyncio.gather(*(process.close() for process in ending))


class _Crew:
    """The processes that carry out one pass together."""

    def __init__(
        self, processes: list[ChildProcess], progress: Progress, total: int | None
    ) -> None:
        self._processes, self._progress, self._total = processes, progress, total
        self._turns = dict.fromkeys(processes, 0)
        self._here = 0

    async def run(self, jobs: list[Job]) -> list[Observed]:
        for process, job in zip(self._processes, jobs, strict=True):
            await process.send(pickle.dumps(job))
        tasks = [asyncio.create_task(self._listen(process)) for process in self._processes]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self, process: ChildProcess) -> Observed:
        while True:
            try:
                answer: Answer = pickle.loads(await process.receive())
            except EOFError:
                message = f"a client process {await process.ended()}; see standard error"
                raise ClientProcessFailed(message) from None
            match answer:
                case Observed():
                    return answer
                case Failed(message):
                    raise ClientProcessFailed(message)
                case Here():
                    await self._one_is_here()
                case Done(what, turns):
                    self._turns[process] = turns
                    self._progress(what, sum(self._turns.values()), self._total)

    async def _one_is_here(self) -> None:
        self._here += 1
        if self._here == len(self._processes):
            self._here = 0
            go_on = pickle.dumps(GoOn(clock() + _NOTICE_SECONDS))
            for process in self._processes:
                await process.send(go_on)


def _total(level: Level, settings: BenchSettings, paced: bool) -> int | None:
    if not paced:
        return level.sessions * settings.rtf_turns
    if level.mode is Mode.OPEN:
        return settings.arrivals
    return None if settings.seconds else level.sessions * settings.turns
