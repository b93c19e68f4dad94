"""One of the load generator's client processes: it carries out jobs and sends what it saw.

It is a child of the load generator (see child_process.py); the messages are pickles of the
classes below. Both ends are this program: nothing that a stranger sent is read here.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from dataclasses import dataclass

from realtime_tts.bench.load import Pass, carry_out
from realtime_tts.bench.meeting import Share
from realtime_tts.bench.observed import Observed
from realtime_tts.bench.settings import BenchSettings, Level
from realtime_tts.bench.sockets import SocketTarget
from realtime_tts.child_process import Parent
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
