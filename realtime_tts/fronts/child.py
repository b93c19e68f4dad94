"""One front process as its parent sees it: its start and end, its messages and its sockets."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
import socket
from collections.abc import Callable
from dataclasses import replace

from realtime_tts.background import cancel
from realtime_tts.child_process import ChildProcess
from realtime_tts.fronts import wire
from realtime_tts.fronts.acceptor import hand_over
from realtime_tts.server.occupancy import FrontRow

log = logging.getLogger(__name__)

_MOST_BYTES = 64 * 2**20


class FrontChild:
    """A front process, made by `start` and used on one event loop.

    `on_message` is called with each message of the front, in order. `row`: the front's row of the
    occupancy table.
    """

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
        self._row = row
        self._beats = 0
        self._silence = 0.0
        self._child = child
        self._channel = channel
        self._on_message = on_message
        self._receiving = asyncio.create_task(self._receive(), name=f"hear-front-{self.number}")
        self._sending: set[asyncio.Task[None]] = set()

    @classmethod
    async def start(
        cls,
        spec: wire.FrontSpec,
        row: FrontRow,
        on_message: Callable[[FrontChild, wire.Up], None],
    ) -> FrontChild:
        """Start a front. `spec.sockets` is filled in here. Raises OSError if the machine cannot
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
    def load(self) -> int:
        """Number of sockets that the front has, or will have once it receives them."""
        return self._row.sockets

    @property
    def silence(self) -> float:
        """Seconds since the front's event loop last moved, as the parent counts them."""
        return 0.0 if self._row.beats != self._beats else self._silence

    def take(self, accepted: socket.socket) -> bool:
        """Hand an accepted socket over; return whether that worked."""
        if not hand_over(self._channel, accepted):
            return False
        self._row.hand_over()
        return True

    def stop_taking(self) -> None:
        """Hand nothing over any more, and let the front know when it has the last socket."""
        self.listening = False
        with contextlib.suppress(OSError):  # the front has ended
            self._channel.shutdown(socket.SHUT_WR)

    def send(self, message: wire.Down) -> None:
        """Send a message. Never blocks; a message to a front that has ended is lost."""
        task = asyncio.create_task(self._child.send(wire.encode(message)))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    def tick(self, seconds: float) -> None:
        """Update `silence`: the parent has run for `seconds` more since the last call."""
        beats = self._row.beats
        self._silence = 0.0 if beats != self._beats else self._silence + seconds
        self._beats = beats

    async def ended(self) -> str:
        """Wait until the process ends; return how it ended, as words that follow its name."""
        return await self._child.ended()

    def kill(self) -> None:
        """Kill the process. Idempotent."""
        self._child.kill()

    async def close(self) -> None:
        """End the process and close all that belongs to it. Idempotent."""
        self.listening = False
        self._channel.close()
        await cancel(self._receiving)
        await self._child.close()
        self._row.clear()

    async def _receive(self) -> None:
        with contextlib.suppress(EOFError):  # `ended` returns why
            while True:
                data = await self._child.receive(_MOST_BYTES)
                try:
                    self._on_message(self, wire.decode_up(data))
                except Exception:  # the next message must still be received
                    log.exception("front.message_lost", extra={"fields": {"front": self.number}})
