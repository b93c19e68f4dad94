"""The load generator in several processes: one that plays hundreds of listeners would be late.

A client process is a child of the load generator (see child_process.py); it carries out jobs and
sends what it saw. The messages are pickles of the classes below: nothing that a stranger sent is
read here.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
from collections.abc import AsyncIterator, Callable
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
_CLIENT = "realtime_tts.bench.client_pool"
_TURN_SECONDS = 5.0
"""Open loop: a turn's length, to guess how many run at once."""
_NOTICE_SECONDS = 0.01
"""How long after the last process has arrived at a meeting all of them go on."""


class ClientProcessFailed(RealtimeTTSError):
    """One of the load generator's own processes could not go on; the message says why."""

    code = "client_process_failed"


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
    """Client processes, started when first needed. Made by `client_pool`."""

    def __init__(self) -> None:
        self._processes: list[ChildProcess] = []

    async def carry_out(
        self,
        level: Level,
        settings: BenchSettings,
        progress: Progress,
        *,
        processes: int,
        paced: bool = True,
    ) -> Observed:
        """Carry out one pass in so many processes. Raises ClientProcessFailed."""
        while len(self._processes) < processes:
            self._processes.append(await ChildProcess.start(__name__))
        crew = _Crew(self._processes[:processes], progress, level, settings, paced=paced)
        try:
            parts = await crew.run()
        except BaseException:
            await self.stop()  # the others wait for the one that failed
            raise
        return merged(parts, 0 if level.mode is Mode.OPEN and paced else level.sessions)

    async def stop(self) -> None:
        """End all of them; the next pass starts others."""
        ending, self._processes = self._processes, []
        await asyncio.gather(*(process.close() for process in ending))


@contextlib.asynccontextmanager
async def client_pool() -> AsyncIterator[ClientPool]:
    """Keep a pool for as long as a block lasts, and end its processes afterwards."""
    pool = ClientPool()
    try:
        yield pool
    finally:
        await pool.stop()


@dataclass(slots=True)
class _Member:
    process: ChildProcess
    turns: int = 0


class _Crew:
    """The processes that carry out one pass together."""

    def __init__(
        self,
        processes: list[ChildProcess],
        progress: Progress,
        level: Level,
        settings: BenchSettings,
        *,
        paced: bool,
    ) -> None:
        self._members = [_Member(process) for process in processes]
        self._progress = progress
        of = len(processes)
        self._jobs = [Job(level, settings, Share(i, of), paced) for i in range(of)]
        self._total = _total(level, settings, paced=paced)
        self._here = 0

    async def run(self) -> list[Observed]:
        for member, job in zip(self._members, self._jobs, strict=True):
            await _tell(member, job)
        tasks = [asyncio.create_task(self._listen(member)) for member in self._members]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self, member: _Member) -> Observed:
        while True:
            try:
                answer: Answer = pickle.loads(await member.process.receive())
            except EOFError:
                how = await member.process.ended()
                message = f"a client process {how}; see standard error"
                raise ClientProcessFailed(message) from None
            match answer:
                case Observed():
                    return answer
                case Failed(message):
                    raise ClientProcessFailed(message)
                case Here():
                    await self._one_is_here()
                case Done(what, turns):
                    member.turns = turns
                    done = sum(each.turns for each in self._members)
                    self._progress(what, done, self._total)

    async def _one_is_here(self) -> None:
        self._here += 1
        if self._here == len(self._members):
            self._here = 0
            at = clock() + _NOTICE_SECONDS
            for member in self._members:
                await _tell(member, GoOn(at))


def _total(level: Level, settings: BenchSettings, *, paced: bool) -> int | None:
    if not paced:
        return level.sessions * settings.rtf_turns
    if level.mode is Mode.OPEN:
        return settings.arrivals
    return None if settings.seconds else level.sessions * settings.turns


async def _tell(member: _Member, message: Job | GoOn) -> None:
    await member.process.send(pickle.dumps(message))
