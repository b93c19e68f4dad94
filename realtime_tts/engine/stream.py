"""One end of a Unix socket that carries messages, each with its length in front."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections import deque
from itertools import islice

_LENGTH = struct.Struct("!I")
_READ_BYTES = 256 * 1024
_WAITING_BYTES = 4 * 2**20  # in the kernel; it gives as much as the system allows
_PIECES = 64  # in one call


class Stream:
    """One end of a message stream. Only `close` waits. One thread may send, another receive."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _WAITING_BYTES)
        self._end = end
        self._unsent: deque[bytes | memoryview] = deque()
        self._unread = bytearray()

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, message: bytes) -> bool:
        """Send a message after those that wait; return whether nothing waits now. Otherwise the
        rest leaves with `flush`, once the other end has taken some."""
        waits = bool(self._unsent)
        self._unsent += (_LENGTH.pack(len(message)), message)
        return not waits and self.flush()

    def flush(self) -> bool:
        """Send what waits; return whether nothing does now. Dropped if the other end has closed."""
        unsent = self._unsent
        while unsent:
            try:
                sent = self._end.sendmsg(list(islice(unsent, _PIECES)))
            except BlockingIOError:
                return False
            except ConnectionError:  # `received` reports it
                unsent.clear()
                break
            while unsent and sent >= len(unsent[0]):
                sent -= len(unsent.popleft())
            if sent:
                unsent[0] = memoryview(unsent[0])[sent:]
        return True

    def received(self) -> list[memoryview]:
        """Return messages that are complete, a limited number: the caller has other work, too.

        Raises BlockingIOError if nothing has arrived, and EOFError once nothing more will.
        """
        try:
            data: bytes | bytearray = self._end.recv(_READ_BYTES)
        except ConnectionError:
            data = b""
        if not data:
            raise EOFError("the other end is closed")
        if self._unread:
            self._unread += data
            data = self._unread
        view, at, whole = memoryview(data), 0, list[memoryview]()
        while (begin := at + _LENGTH.size) <= len(data):
            end = begin + _LENGTH.unpack_from(data, at)[0]
            if end > len(data):
                break
            whole.append(view[begin:end])
            at = end
        if at or data is not self._unread:  # a long message is not copied with each of its parts
            self._unread = bytearray(view[at:])
        return whole

    def close(self, linger: float = 0.0) -> None:
        """Close the socket. What waits is sent for at most `linger` seconds. Idempotent."""
        if linger and self._unsent:
            self._end.settimeout(linger)
            with contextlib.suppress(OSError):
                self._end.sendall(b"".join(self._unsent))
        self._unsent.clear()
        self._end.close()
