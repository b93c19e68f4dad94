"""One engine process as its parent sees it: to start, to communicate with, and to end.

A new object is made for every start, with sockets of its own.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
from collections.abc import Callable

from realtime_tts.child_process import ChildProcess
from realtime_tts.engine import wire
from realtime_tts.engine.addresses import Addresses
from realtime_tts.engine.channel import Channel
from realtime_tts.logs import event

log = logging.getLogger(__name__)


class Process:
    """An engine process, on one event loop. `on_message` gets everything it sends, in order.

    The constructor raises OSError if the machine has no more files or sockets.
    """

    def __init__(self, spec: bytes, name: str, on_message: Callable[[wire.Up], None]) -> None:
        self._spec = spec
        self._name = name
        self._child: ChildProcess | None = None
        with contextlib.ExitStack() as failing:
            self.addresses = Addresses.make()
            failing.callback(self.addresses.remove)
            self._listener = failing.enter_context(self.addresses.listen())
            # The engine takes the first front that connects for its parent.
            self.channel = Channel(self.addresses, name, on_message)
            failing.pop_all()

    @property
    def pid(self) -> int | None:
        return None if self._child is None else self._child.pid

    async def start(self) -> None:
        """Start the interpreter. Raises OSError if the machine cannot."""
        listener, level = self._listener.fileno(), logging.getLogger().level
        self._child = await ChildProcess.start(
            "realtime_tts.engine.child", output=self._log_line, pass_fds=(listener,)
        )
        self._listener.close()  # so that it ends with the engine
        await self._child.send(pickle.dumps((self.addresses, listener, level, self._spec)))
        self.channel.listen()

    async def ended(self) -> str:
        """Wait for the end, and for the messages before it; return how the process ended."""
        assert self._child is not None, "start() comes first"
        how = await self._child.ended()
        self.channel.receive_rest()
        return f"its process {how}"

    def kill(self) -> None:
        """End the process now, whatever it does. Idempotent."""
        if self._child is not None:
            self._child.kill()

    async def close(self) -> None:
        """Leave nothing behind: no process, no socket, no file."""
        if self._child is not None:
            await self._child.close()
        self.channel.close()
        self._listener.close()
        self.addresses.remove()

    def _log_line(self, line: str) -> None:
        event(log, logging.WARNING, "engine.output", engine=self._name, line=line)
