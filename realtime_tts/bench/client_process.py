"""One of the load generator's processes: `python -m realtime_tts.bench.client_process`.

It reads jobs from standard input and writes what it saw to standard output; see pipe.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable

from realtime_tts.bench.load import Pass, carry_out
from realtime_tts.bench.pipe import Answer, Done, Failed, GoOn, Here, Job, packed, read
from realtime_tts.bench.sockets import SocketTarget
from realtime_tts.errors import RealtimeTTSError
from realtime_tts.garbage import calm_garbage_collector


class _Meeting:
    """With the other client processes, through the parent."""

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


async def _serve(output: int) -> None:
    """Carry out jobs until the parent is gone."""
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)

    def answer(message: Answer) -> None:
        data = memoryview(packed(message))
        while data:
            data = data[os.write(output, data) :]

    calm_garbage_collector()
    meeting, task = _Meeting(answer), None
    try:
        while True:
            message = await read(reader)
            if isinstance(message, Job):
                meeting = _Meeting(answer)
                task = asyncio.create_task(_carry_out(message, meeting, answer))
            elif isinstance(message, GoOn):
                meeting.go_on(message.at)
    except asyncio.IncompleteReadError:
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


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


def main() -> None:
    """Serve. Whatever prints goes to standard error: the pipe is for answers alone."""
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with contextlib.suppress(BrokenPipeError):
        asyncio.run(_serve(output))


if __name__ == "__main__":
    main()
