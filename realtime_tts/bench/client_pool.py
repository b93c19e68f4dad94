"""The load generator in several processes: a single one that plays hundreds of listeners would be
late.

A client process is a child of the load generator (see child_process.py); it carries out jobs and
sends what it saw. The messages are pickles of the classes below: no untrusted data is read here.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from realtime_tts.background import cancel
from realtime_tts.bench.barriers import Share
from realtime_tts.bench.load import Pass, carry_out
from realtime_tts.bench.observation import Observed, clock, merged
from realtime_tts.bench.settings import BenchSettings, Level, Mode
from realtime_tts.bench.sockets import SocketTarget
from realtime_tts.bench.workload import Progress
from realtime_tts.child_process import ChildProcess
from realtime_tts.cores import usable_cores
from realtime_tts.errors import RealtimeTTSError
from realtime_tts.garbage import calm_garbage_collector
from realtime_tts.parent_process import Parent


@dataclass(frozen=True, slots=True)
class Job:
    """A message to a client process: carry out your share of a pass."""

    level: Level
    settings: BenchSettings
    share: Share
    paced: bool


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message from a client process: all of its sessions wait at the barrier."""


@dataclass(frozen=True, slots=True)
class Release:
    """A message to all client processes, once each has `Arrived`: go on when `clock` shows `at`."""

    at: float


@dataclass(frozen=True, slots=True)
class Done:
    """A message from a client process: it has spoken `turns` turns so far."""

    what: str
    turns: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A message from a client process: the pass cannot go on, and why."""

    message: str


Answer = Arrived | Done | Failed | Observed


class _RemoteBarrier:
    """A barrier with the other client processes, through the load generator; `wait` is a
    `ProcessBarrier`."""

    def __init__(self, answer: Callable[[Answer], None]) -> None:
        self._answer = answer
        self._released: asyncio.Future[float] | None = None

    async def wait(self) -> float:
        self._released = asyncio.get_running_loop().create_future()
        self._answer(Arrived())
        return await self._released

    def release(self, at: float) -> None:
        assert self._released is not None, "the parent answers, it does not begin"
        self._released.set_result(at)


async def _serve(parent: Parent) -> None:
    """Carry out one job after the other, until the parent kills this process or ends."""
    messages: asyncio.Queue[Job | Release] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def heard(message: bytes) -> None:
        loop.call_soon_threadsafe(messages.put_nowait, pickle.loads(message))

    def answer(message: Answer) -> None:
        parent.send(pickle.dumps(message))

    parent.listen(heard, at_end=lambda: None)
    calm_garbage_collector()
    barrier = _RemoteBarrier(answer)
    async with asyncio.TaskGroup() as jobs:
        while True:
            match await messages.get():
                case Job() as job:
                    barrier = _RemoteBarrier(answer)
                    jobs.create_task(_carry_out(job, barrier, answer))
                case Release(at):
                    barrier.release(at)


async def _carry_out(job: Job, barrier: _RemoteBarrier, answer: Callable[[Answer], None]) -> None:
    def progress(what: str, done: int, total: int | None) -> None:
        answer(Done(what, done))

    target = SocketTarget(job.settings)
    given = Pass(job.level, job.settings, target, progress, job.paced, job.share, barrier.wait)
    try:
        answer(await carry_out(given))
    except RealtimeTTSError as error:
        answer(Failed(f"{error.code}: {error}"))
    except Exception as error:
        answer(Failed(f"{type(error).__name__}: {error}"))
        raise


def main(parent: Parent) -> None:
    """Run a client process of one load generator, the parent."""
    asyncio.run(_serve(parent))


SESSIONS_PER_PROCESS = 32
_TURN_SECONDS = 5.0
"""Assumed seconds of a turn in an open loop, to estimate how many run at once."""
_NOTICE_SECONDS = 0.01
"""Seconds from the arrival of the last process at a barrier until all of them go on."""


class ClientProcessFailed(RealtimeTTSError, code="client_process_failed"):
    """Raised if a process of the load generator cannot go on; the message says why."""


def processes_for(level: Level, settings: BenchSettings) -> int:
    """Return how many client processes a level gets: as many as the settings ask for, or one for
    every 32 sessions, but no more than half of the cores.

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
        """Carry out one pass in as many processes as it needs. Raises ClientProcessFailed."""
        number = processes_for(level, settings)
        while len(self._processes) < number:
            self._processes.append(await ChildProcess.start(__name__))
        workers = _WorkerGroup(self._processes[:number], progress, _total(level, settings, paced))
        jobs = [Job(level, settings, Share(index, number), paced) for index in range(number)]
        try:
            parts = await workers.run(jobs)
        except BaseException:
            await self._stop()  # the others wait for the one that failed
            raise
        return merged(parts, 0 if level.mode is Mode.OPEN and paced else level.sessions)

    async def _stop(self) -> None:
        """End all processes; the next pass starts others."""
        ending, self._processes = self._processes, []
        await asyncio.gather(*(process.close() for process in ending))


class _WorkerGroup:
    """The processes that carry out one pass together."""

    def __init__(
        self, processes: list[ChildProcess], progress: Progress, total: int | None
    ) -> None:
        self._processes, self._progress, self._total = processes, progress, total
        self._turns = dict.fromkeys(processes, 0)
        self._arrived = 0

    async def run(self, jobs: list[Job]) -> list[Observed]:
        for process, job in zip(self._processes, jobs, strict=True):
            await process.send(pickle.dumps(job))
        tasks = [asyncio.create_task(self._listen(process)) for process in self._processes]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            await cancel(*tasks)

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
                case Arrived():
                    await self._one_arrived()
                case Done(what, turns):
                    self._turns[process] = turns
                    self._progress(what, sum(self._turns.values()), self._total)

    async def _one_arrived(self) -> None:
        self._arrived += 1
        if self._arrived == len(self._processes):
            self._arrived = 0
            release = pickle.dumps(Release(clock() + _NOTICE_SECONDS))
            for process in self._processes:
                await process.send(release)


def _total(level: Level, settings: BenchSettings, paced: bool) -> int | None:
    if not paced:
        return level.sessions * settings.rtf_turns
    if level.mode is Mode.OPEN:
        return settings.arrivals
    return None if settings.seconds else level.sessions * settings.turns
