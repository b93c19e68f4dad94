"""One engine process as the front sees it: started, spoken to, heard, ended.

A new one is made for every start, with sockets of its own in a private folder, so that nothing a
dead process has said or was told reaches its successor.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import pickle
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import zmq

from realtime_tts.engine import wire
from realtime_tts.engine.child import Addresses
from realtime_tts.logs import event

log = logging.getLogger(__name__)

_MESSAGES_A_ROUND = 32
_LAST_WORDS_SECONDS = 0.05
_STDERR_BYTES = 16_384


class Process:
    """Lives on one event loop. `on_message` gets everything the engine says, in order.

    Making one raises OSError or zmq.ZMQError if the machine has no more files or sockets to give.
    """

    def __init__(self, spec: bytes, name: str, on_message: Callable[[wire.Up], None]) -> None:
        self._spec = spec
        self._name = name
        self._on_message = on_message
        self._loop = asyncio.get_running_loop()
        self._process: asyncio.subprocess.Process | None = None
        self._log_task: asyncio.Task[None] | None = None
        folder = Path(tempfile.mkdtemp(prefix="realtime-tts-"))  # mode 0700
        self._addresses = Addresses(folder, os.getpid(), logging.getLogger().level)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        try:
            self._make_sockets()
        except BaseException:
            self._leave_nothing()
            raise

    def _make_sockets(self) -> None:
        self._up = self._context.socket(zmq.PULL)
        self._up.bind(self._addresses.up)
        self._down = self._context.socket(zmq.PUSH)
        self._down.sndhwm = 0  # a front never waits; an engine that takes nothing is soon killed
        # Connected, not bound, so that what is sent before the child listens waits for it.
        self._down.reconnect_ivl = 10  # milliseconds
        self._down.connect(self._addresses.down)

    def _leave_nothing(self) -> None:
        self._context.destroy(linger=0)
        shutil.rmtree(self._addresses.folder, ignore_errors=True)

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    async def start(self) -> None:
        """Start the interpreter. Raises OSError if the machine cannot."""
        code = f"import sys; sys.path[:] = {sys.path!r}; import realtime_tts.engine.child as child"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-c", f"{code}; child.main()",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in the terminal is the front's
        )  # fmt: skip
        self._process = process
        assert process.stdin is not None and process.stdout is not None
        self._log_task = asyncio.create_task(self._log_output(process.stdout))
        with contextlib.suppress(OSError):  # gone already: `ended` tells
            process.stdin.write(pickle.dumps((self._addresses, self._spec)))
            await process.stdin.drain()
        self._loop.add_reader(self._up.FD, self._receive)
        self._receive()  # the descriptor tells of changes only

    def send(self, message: wire.Down) -> None:
        """Never blocks."""
        if not self._down.closed:
            self._down.send(wire.encode(message), zmq.NOBLOCK)

    async def ended(self) -> str:
        """Wait for the end, and for what was said before it; says how the process ended."""
        assert self._process is not None, "start() comes first"
        status = await self._process.wait()
        await asyncio.sleep(_LAST_WORDS_SECONDS)
        self._receive(everything=True)
        if status >= 0:
            return f"its process ended with status {status}"
        return f"its process was ended by {signal.Signals(-status).name}"

    def kill(self) -> None:
        """End it now, whatever it does. Idempotent."""
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def close(self) -> None:
        """Leave nothing behind: no process, no socket, no file."""
        self.kill()
        if self._process is not None:
            await self._process.wait()
            assert self._process.stdin is not None
            self._process.stdin.close()
        if self._log_task is not None:
            # A grandchild that outlives its parent may hold the pipe; its words are lost.
            await asyncio.wait([self._log_task], timeout=_LAST_WORDS_SECONDS)
            self._log_task.cancel()
            await asyncio.gather(self._log_task, return_exceptions=True)
        if not self._up.closed:
            self._loop.remove_reader(self._up.FD)
        self._leave_nothing()

    def _receive(self, everything: bool = False) -> None:
        """Hand over what has come, a limited number a round: sockets want their turn, too."""
        count = 0
        while not self._up.closed:
            try:
                frame = self._up.recv(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            try:
                self._on_message(wire.decode_up(frame.buffer))
            except Exception:  # what came behind it must not wait for the descriptor to change
                log.exception("engine.message_lost", extra={"fields": {"engine": self._name}})
            count += 1
            if count == _MESSAGES_A_ROUND and not everything:
                self._loop.call_soon(self._receive)
                return

    async def _log_output(self, output: asyncio.StreamReader) -> None:
        """What libraries print, and a crash's last words, line by line to the log."""
        rest = b""
        while data := await output.read(_STDERR_BYTES):
            *lines, rest = (rest + data).replace(b"\r", b"\n").split(b"\n")
            for line in lines:
                self._log_line(line)
            rest = rest[-_STDERR_BYTES:]
        self._log_line(rest)

    def _log_line(self, line: bytes) -> None:
        if line.strip():
            text = line.decode(errors="replace").rstrip()
            event(log, logging.WARNING, "engine.output", engine=self._name, line=text)
