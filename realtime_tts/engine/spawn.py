"""One engine process as the front sees it: started, spoken to, heard, ended.

A new one is made for every start, with sockets of its own in a private folder, so that nothing a
dead process has said or was told reaches its successor.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import zmq

from realtime_tts.child_process import ChildProcess
from realtime_tts.engine import wire
from realtime_tts.engine.child import Addresses
from realtime_tts.logs import event

log = logging.getLogger(__name__)

_MESSAGES_A_ROUND = 32
_LAST_WORDS_SECONDS = 0.05


class Process:
    """Lives on one event loop. `on_message` gets everything the engine says, in order.

    Making one raises OSError or zmq.ZMQError if the machine has no more files or sockets to give.
    """

    def __init__(self, spec: bytes, name: str, on_message: Callable[[wire.Up], None]) -> None:
        self._spec = spec
        self._name = name
        self._on_message = on_message
        self._loop = asyncio.get_running_loop()
        self._child: ChildProcess | None = None
        folder = Path(tempfile.mkdtemp(prefix="realtime-tts-"))  # mode 0700
        self._addresses = Addresses(folder, logging.getLogger().level)
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
        return None if self._child is None else self._child.pid

    async def start(self) -> None:
        """Start the interpreter. Raises OSError if the machine cannot."""
        self._child = await ChildProcess.start("realtime_tts.engine.child", output=self._log_line)
        await self._child.send(pickle.dumps((self._addresses, self._spec)))
        self._loop.add_reader(self._up.FD, self._receive)
        self._receive()  # the descriptor tells of changes only

    def send(self, message: wire.Down) -> None:
        """Send a message to the engine. Never blocks."""
        if not self._down.closed:
            self._down.send(wire.encode(message), zmq.NOBLOCK)

    async def ended(self) -> str:
        """Wait for the end, and for what was said before it; says how the process ended."""
        assert self._child is not None, "start() comes first"
        how = await self._child.ended()
        await asyncio.sleep(_LAST_WORDS_SECONDS)
        self._receive(everything=True)
        return f"its process {how}"

    def kill(self) -> None:
        """End it now, whatever it does. Idempotent."""
        if self._child is not None:
            self._child.kill()

    async def close(self) -> None:
        """Leave nothing behind: no process, no socket, no file."""
        if self._child is not None:
            await self._child.close()
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

    def _log_line(self, line: str) -> None:
        event(log, logging.WARNING, "engine.output", engine=self._name, line=line)
