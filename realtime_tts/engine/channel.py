"""The front's ends of the two sockets between a front and an engine process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import zmq

from realtime_tts.engine import wire
from realtime_tts.engine.addresses import Addresses

log = logging.getLogger(__name__)

_MESSAGES_A_ROUND = 32


class Channel:
    """Lives on one event loop. `on_message` gets everything the engine says to this `front`, in
    order. `name` is the engine's in the log.

    Making one raises zmq.ZMQError if the machine has no more sockets to give.
    """

    def __init__(
        self,
        addresses: Addresses,
        name: str,
        on_message: Callable[[wire.Up], None],
        *,
        front: int = wire.PARENT,
    ) -> None:
        self._name = name
        self._on_message = on_message
        self._loop = asyncio.get_running_loop()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        try:
            self._make_sockets(addresses.up(front), addresses.down)
        except BaseException:
            self._context.destroy(linger=0)
            raise

    def _make_sockets(self, up: str, down: str) -> None:
        self._up = self._context.socket(zmq.PULL)
        self._up.bind(up)
        self._down = self._context.socket(zmq.PUSH)
        self._down.sndhwm = 0  # a front never waits; an engine that takes nothing is soon killed
        # Connected, not bound, so that what is sent before the child listens waits for it.
        self._down.reconnect_ivl = 10  # milliseconds
        self._down.connect(down)

    def listen(self) -> None:
        """Begin to hand over what comes."""
        self._loop.add_reader(self._up.FD, self._receive)
        self._receive()  # the descriptor tells of changes only

    def send(self, message: wire.Down) -> None:
        """Send a message to the engine. Never blocks."""
        if not self._down.closed:
            self._down.send(wire.encode(message), zmq.NOBLOCK)

    def receive_rest(self) -> None:
        """Hand over all that has come."""
        self._receive(everything=True)

    def close(self) -> None:
        """Leave no socket behind. Idempotent."""
        if not self._up.closed:
            self._loop.remove_reader(self._up.FD)
        self._context.destroy(linger=0)

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
