"""One process accepts for all fronts, and hands each socket to the front that has the fewest.

The kernel could do it (SO_REUSEPORT), but it picks a front at random: of a few hundred sockets that
stay open for minutes, one front gets 1.5 times as many as another. docs/decisions has the
measurement. When a front ends, only its own sockets are lost; new ones go to the others.
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
"""Most sockets that are accepted in one pass of the event loop."""
_RETRY_SECONDS = 0.5
_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class SocketReceiver(Protocol):
    """A front that sockets can be handed to."""

    def take(self, accepted: socket.socket) -> bool:
        """Hand the socket over; return whether that worked. The caller closes its own copy."""


class Acceptor:
    """Accepts sockets on `listeners`, which it also closes, and hands them over to fronts.

    `fronts` gives the fronts to try for a socket, the best one first. While there is none,
    connections wait in the kernel.
    """

    def __init__(
        self, listeners: Sequence[socket.socket], fronts: Callable[[], Sequence[SocketReceiver]]
    ) -> None:
        self._listeners = listeners
        self._fronts = fronts
        self._loop = asyncio.get_running_loop()
        self._retry: asyncio.TimerHandle | None = None
        for listener in listeners:
            listener.setblocking(False)

    def start(self) -> None:
        """Start to accept, if it has not started yet. Once closed, it stays so."""
        self._forget_retry()
        for listener in self._listeners:
            if listener.fileno() >= 0:
                self._loop.add_reader(listener, self._accept, listener)

    def close(self) -> None:
        """Stop accepting, and close the listeners. Idempotent."""
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
            fronts = self._fronts()
            if not fronts:
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
                if not any(front.take(accepted) for front in fronts):
                    event(log, logging.ERROR, "socket.not_taken", fronts=len(fronts))

    def _try_later(self) -> None:
        self._pause()
        self._retry = self._loop.call_later(_RETRY_SECONDS, self.start)


def hand_over(channel: socket.socket, accepted: socket.socket) -> bool:
    """Send a socket through the Unix socket `channel`; return False if it is full or closed."""
    try:
        socket.send_fds(channel, [b"s"], [accepted.fileno()])
    except OSError:  # the front has ended or hangs; the supervisor finds out which
        return False
    return True


class SocketLost(Exception):
    """A socket was handed over, and this process had no file descriptor left for it."""


def received(channel: socket.socket) -> socket.socket | None:
    """Return the next socket that was handed over, or None if there is none now.

    Raises SocketLost instead of the next socket, and EOFError when the parent has closed its end.
    """
    try:
        data, files, _, _ = socket.recv_fds(channel, 1, 1)
    except (BlockingIOError, InterruptedError):
        return None
    if not data:
        raise EOFError("the parent has closed its end")
    if not files:
        event(log, logging.ERROR, "socket.lost", why="too many open files")
        raise SocketLost
    accepted = socket.socket(fileno=files[0])
    accepted.setblocking(False)
    return accepted
