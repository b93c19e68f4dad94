"""The engine process's end of the socket that its fronts write to."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence

import zmq

from realtime_tts.engine import wire
from realtime_tts.engine.link import Command

_LONGEST_SECONDS = 0.1
"""Of one wait: nothing but a message ends it sooner, not even `put`."""


class Downlink:
    """A `CommandQueue` that is read in the loop's own thread.

    With a thread between socket and loop, each turn would begin by the time later that one thread
    takes to wake another. `hear` is given each message, and returns its commands.
    """

    def __init__(
        self, socket: zmq.Socket[bytes], hear: Callable[[wire.Down], Sequence[Command]]
    ) -> None:
        self._socket, self._hear = socket, hear

    def get(self, timeout: float) -> Sequence[Command]:
        """As a queue's, but it may raise queue.Empty sooner: it waits whole milliseconds, and no
        longer than `_LONGEST_SECONDS`."""
        self._socket.rcvtimeo = int(1_000 * min(timeout, _LONGEST_SECONDS))
        return self._received(0)

    def get_nowait(self) -> Sequence[Command]:
        """As a queue's: raises queue.Empty."""
        return self._received(zmq.NOBLOCK)

    def put(self, commands: Sequence[Command]) -> None:
        """Commands come from the fronts alone. Without any, a loop that waits looks up soon."""
        assert not commands, "commands come from the fronts"

    def _received(self, flags: int) -> Sequence[Command]:
        try:
            data = self._socket.recv(flags)
        except zmq.Again:
            raise queue.Empty from None
        return self._hear(wire.decode_down(data))
