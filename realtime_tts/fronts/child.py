"""One front process as its parent sees it: started, given sockets, spoken to, heard, ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
import socket
from collections.abc import Callable
from dataclasses import replace

from realtime_tts.child_process import ChildProcess
from realtime_tts.fronts import wire
from realtime_tts.fronts.acceptor import hand_over
from realtime_tts.server.occupancy import FrontRow

log = logging.getLogger(__name__)

_MOST_BYTES = 64 * 2**20


class FrontChild:
    """Lives on one event loop. `on_message` gets what the front says, in order; `row` is its row of
    the occupancy table. Made by `start`."""

    def __init__(
        self,
        spec: wire.FrontSpec,
        row: FrontRow,
        child: ChildProcess,
        channel: socket.socket,
        on_message: Callable[[FrontChild, wire.Up], None],
    ) -> None:
        self.number = spec.number
        self.serial = spec.serial
        self.listening = False
        self.ready = False
        self.silence = 0.0
        """Seconds, as the parent counts them, in which its event loop has not moved."""
        self._row = row
        self._beats = 0
        self._given = 0
        self._child = child
        self._channel = channel
        self._on_message = on_message
        self._hearing = asyncio.create_task(self._hear(), name=f"hear-front-{self.number}")
        self._sending: set[asyncio.Task[None]] = set()

    @classmethod
    async def start(
        cls,
        spec: wire.FrontSpec,
        row: FrontRow,
        on_message: Callable[[FrontChild, wire.Up], None],
    ) -> FrontChild:
        """Start the interpreter; `spec.sockets` is filled in. Raises OSError if the machine cannot
        start another process."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            with theirs:
                spec = replace(spec, sockets=theirs.fileno())
                child = await ChildProcess.start(
                    "realtime_tts.fronts.process", pass_fds=(spec.sockets, spec.occupancy)
                )
        except BaseException:
            ours.close()
            raise
        row.clear()
        made = cls(spec, row, child, ours, on_message)
        await child.send(pickle.dumps(spec))
        return made

    @property
    def pid(self) -> int:
        """The front's process id."""
        return self._child.pid

    @property
    def load(self) -> int:
        """Sockets that it has, and those that are on their way to it."""
        return self._given - self._row.received + self._row.sockets

    def take(self, accepted: socket.socket) -> bool:
        """Hand an accepted socket over; whether that was possible."""
        if not hand_over(self._channel, accepted):
            return False
        self._given += 1
        return True

    def send(self, message: wire.Down) -> None:
        """Send a message. Never blocks; those to a front that has ended get lost."""
        task = asyncio.create_task(self._child.send(wire.encode(message)))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    def tick(self, seconds: float) -> None:
        """So much time has gone by for the parent, too: see whether the front has moved."""
        beats = self._row.beats
        self.silence = 0.0 if beats != self._beats else self.silence + seconds
        self._beats = beats

    async def ended(self) -> str:
        """Wait for its end; says how it ended, as words that follow its name."""
        return await self._child.ended()

    def kill(self) -> None:
        """End it now, whatever it does. Idempotent."""
        self._child.kill()

    async def close(self) -> None:
        """Leave nothing behind. Idempotent."""
        self.listening = False
        self._channel.close()
        self._hearing.cancel()
        await asyncio.gather(self._hearing, return_exceptions=True)
        await self._child.close()
        self._row.clear()

    async def _hear(self) -> None:
        with contextlib.suppress(EOFError):  # `ended` tells
            while True:
                data = await self._child.receive(_MOST_BYTES)
                try:
                    self._on_message(self, wire.decode_up(data))
                except Exception:  # the next one is to be heard all the same
                    log.exception("front.message_lost", extra={"fields": {"front": self.number}})
