"""One process accepts for all fronts, and hands each socket to the front that has the fewest.

The kernel could do it (SO_REUSEPORT), but it draws lots: of a few hundred sockets, which speak for
minutes, one front gets half as many again as another. docs/decisions has the measurement. A front
that has ended costs its own sockets only; those that are still to come go to the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Protocol

from realtime_tts.logs import event

log = logging.getLogger(__name__)

_AT_ONCE = 16
"""Sockets accepted in one pass of the event loop."""
_BACKLOG = 2_048
"""Connections that wait in the kernel."""
_RETRY_SECONDS = 0.5
_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Taker(Protocol):
    """A front that may be given sockets."""

    def take(self, accepted: socket.socket) -> bool:
        """Whether it could be handed over; it is the caller's to close."""


class Acceptor:
    """Accepts on `listeners`, which it closes. `takers` says who is to be asked, the best first.

    While there is nobody, connections wait in the kernel.
    """

    def __init__(
        self, listeners: Sequence[socket.socket], takers: Callable[[], Sequence[Taker]]
    ) -> None:
        self._listeners = listeners
        self._takers = takers
        self._loop = asyncio.get_running_loop()
        self._retry: asyncio.TimerHandle | None = None
        self._listens = False
        for listener in listeners:
            listener.setblocking(False)

    def start(self) -> None:
        """Begin to accept, if that has not begun."""
        self._forget_retry()
        for listener in self._listeners:
            if not self._listens:
                listener.listen(_BACKLOG)
            self._loop.add_reader(listener, self._accept, listener)
        self._listens = True

    def close(self) -> None:
        """Accept no more. Idempotent."""
        self._pause()
        for listener in self._listeners:
            listener.close()

    def _pause(self) -> None:
        self._forget_retry()
        for listener in self._listeners:
            if listener.fileno() >= 0:
                self._loop.remove_reader(listener)

    def _forget_retry(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            takers = self._takers()
            if not takers:
                self._try_later()
                return
            try:
                accepted, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                event(log, logging.ERROR, "socket.not_accepted", why=str(error))
                self._try_later()
                return
            with contextlib.closing(accepted):
                if not any(taker.take(accepted) for taker in takers):
                    event(log, logging.ERROR, "socket.not_taken", fronts=len(takers))

    def _try_later(self) -> None:
        self._pause()
        self._retry = self._loop.call_later(_RETRY_SECONDS, self.start)


def hand_over(channel: socket.socket, accepted: socket.socket) -> bool:
    """Send an accepted socket through a Unix socket; whether there was room, and somebody there."""
    try:
        socket.send_fds(channel, [b"s"], [accepted.fileno()])
    except OSError:  # it has ended, or takes nothing; whoever watches it finds out which
        return False
    return True


def received(channel: socket.socket) -> socket.socket | None:
    """The next socket that was handed over, or None: there is none now.

    Raises EOFError when there will be no more.
    """
    try:
        data, files, _, _ = socket.recv_fds(channel, 1, 1)
    except (BlockingIOError, InterruptedError):
        return None
    if not data:
        raise EOFError("the parent has closed its end")
    if not files:  # this process had no file descriptor left for it
        event(log, logging.ERROR, "socket.lost", why="too many open files")
        return None
    accepted = socket.socket(fileno=files[0])
    accepted.setblocking(False)
    return accepted
