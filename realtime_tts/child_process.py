"""A child process of ours as its parent sees it: how it is started, spoken to, heard and ended.

Engines, the voice worker and the load generator's clients all are such children. For every one of
them:

- It ends with its parent, whatever the parent dies of. Its standard input is a pipe, which the
  kernel closes then, and a thread of the child waits for that, also in the middle of its work.
- Signals are the parent's business. The child has a session of its own and ignores SIGINT, SIGTERM
  and SIGHUP, so that a Ctrl-C, or a signal to the whole group, still lets turns finish.
- Both pipes carry messages and nothing else: bytes, each behind its length. What libraries print
  goes to standard error, and the parent gets it line by line.
- Nothing is left behind: `close` kills the child and waits for its end, even if the caller of
  `close` is cancelled meanwhile.

The child's side is parent_process.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence

from realtime_tts.background import cancel
from realtime_tts.parent_process import LENGTH

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
_OUTPUT_BYTES = 16_384
_LAST_WORDS_SECONDS = 0.05


class ChildProcess:
    """A child as its parent sees it, on one event loop. Made by `start`."""

    def __init__(
        self, process: asyncio.subprocess.Process, output: Callable[[str], None] | None
    ) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout
        self._reading = asyncio.Lock()
        self._printing: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        if output is not None:
            assert process.stderr is not None
            self._printing = asyncio.create_task(_pass_on(process.stderr, output))

    @classmethod
    async def start(
        cls,
        module: str,
        *,
        output: Callable[[str], None] | None = None,
        background: bool = False,
        pass_fds: Sequence[int] = (),
    ) -> ChildProcess:
        """Start a fresh interpreter that imports `module` and calls its `main(parent: Parent)`.

        `output` is called with each line that the child prints; without it, the lines go to this
        process's standard error. A `background` child has the lowest priority and computes with one
        thread. `pass_fds`: open files that the child gets, under the same numbers. Raises OSError
        if the machine cannot start another process.
        """
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; from realtime_tts.parent_process import run"
        )
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-u", "-P", "-c"),  # -u: what is printed arrives at once
            f"{code}; run({module!r}, {background})",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if output is None else asyncio.subprocess.PIPE,
            env=os.environ | (_ONE_THREAD if background else {}),
            start_new_session=True,
            pass_fds=pass_fds,
        )
        return cls(process, output)

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the child still runs, as far as is known, and is not being closed."""
        return self._process.returncode is None and self._closing is None

    async def send(self, *pieces: bytes) -> None:
        """Send one message, given in pieces, which are never joined here.

        A child that has ended gets nothing and raises nothing: see `receive` and `ended`.
        """
        with contextlib.suppress(ConnectionError):
            self._stdin.write(LENGTH.pack(sum(map(len, pieces))))
            for piece in pieces:
                self._stdin.write(piece)
                await self._stdin.drain()

    async def receive(self, most_bytes: int | None = None) -> bytes:
        """Return the child's next message.

        Raises EOFError when the child has ended or closed its end, and ValueError for a message
        that says it is longer than `most_bytes`.
        """
        async with self._reading:
            (size,) = LENGTH.unpack(await self._stdout.readexactly(LENGTH.size))
            if most_bytes is not None and size > most_bytes:
                raise ValueError(f"a message of {size} bytes, of at most {most_bytes}")
            return await self._stdout.readexactly(size)

    async def ended(self) -> str:
        """Wait for the child's end. Return how it ended, in words that follow its name."""
        status = await self._process.wait()
        if status >= 0:
            return f"ended with status {status}"
        named = {one.value: one.name for one in signal.Signals}  # real-time signals are not
        return f"was ended by {named.get(-status, f'signal {-status}')}"

    def kill(self) -> None:
        """Kill the child, whatever it does. Idempotent."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def close(self) -> None:
        """Kill the child and leave nothing behind: no process, no pipe, no task. Idempotent."""
        self.kill()
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name=f"close-{self.pid}")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await asyncio.gather(self._process.wait(), self._drop())
        self._stdin.close()
        if self._printing is not None:
            # A grandchild that outlives its parent may hold the pipe; its words are lost.
            await asyncio.wait([self._printing], timeout=_LAST_WORDS_SECONDS)
            await cancel(self._printing)

    async def _drop(self) -> None:
        """Drop what was not received: to asyncio, a process has not ended before it was read."""
        async with self._reading:
            while await self._stdout.read(_OUTPUT_BYTES):
                pass


async def _pass_on(printed: asyncio.StreamReader, output: Callable[[str], None]) -> None:
    """Pass on what is printed, line by line: progress bars, and a crash's last words, too."""
    rest = b""
    while data := await printed.read(_OUTPUT_BYTES):
        *lines, rest = (rest + data).replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            _pass_on_line(line, output)
        rest = rest[-_OUTPUT_BYTES:]
    _pass_on_line(rest, output)


def _pass_on_line(line: bytes, output: Callable[[str], None]) -> None:
    if line.strip():
        output(line.decode(errors="replace").rstrip())
