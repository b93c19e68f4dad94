"""How full every front is: a table in memory that all processes of a server share.

Each front has one row, and all read every row. No lock is needed: a row holds numbers of eight
bytes, each written in one piece and by one process. A front counts a session of its own before it
lets other tasks run, so fronts that admit at the very same moment can exceed a limit by one session
each, and by no more; others still count a session for a tenth of a second after its end.
"""

from __future__ import annotations

import mmap
import os
import tempfile

_FIELDS = 8
"""Numbers in a row, so that each row has a cache line of its own."""
_HANDED_OVER, _CLOSED, _SESSIONS, _UNAUTHENTICATED, _BEATS = range(5)


class Occupancy:
    """The table; every process opens it from the same file, which has no name."""

    def __init__(self, file: int, rows: int) -> None:
        self.file = file
        self._memory = mmap.mmap(file, rows * _FIELDS * 8)
        self._numbers = memoryview(self._memory).cast("q")

    @classmethod
    def make(cls, rows: int) -> Occupancy:
        """Make a new table, all zeros. Raises OSError."""
        with tempfile.TemporaryFile() as file:
            file.truncate(rows * _FIELDS * 8)
            return cls(os.dup(file.fileno()), rows)

    def row(self, number: int) -> FrontRow:
        """Return the row of a front; fronts count from one."""
        return FrontRow(self._numbers, number - 1)

    @property
    def sessions(self) -> int:
        """Open sessions over all fronts."""
        return sum(self._numbers[_SESSIONS::_FIELDS].tolist())

    def close(self) -> None:
        """Close the table, and with it all rows. Idempotent."""
        self._numbers.release()
        if not self._memory.closed:
            self._memory.close()
            os.close(self.file)


class FrontRow:
    """The row of one front, and its view of the others."""

    def __init__(self, numbers: memoryview, index: int) -> None:
        self._numbers = numbers
        self._first = index * _FIELDS

    @property
    def sockets(self) -> int:
        """Sockets that the front has, or will have once it receives them."""
        return self._own(_HANDED_OVER) - self._own(_CLOSED)

    @property
    def beats(self) -> int:
        """Heartbeats: a number that grows while the front's event loop runs."""
        return self._own(_BEATS)

    @property
    def sessions(self) -> int:
        """Open sessions of the other fronts."""
        return self._of_others(_SESSIONS)

    @property
    def unauthenticated(self) -> int:
        """Sockets of the other fronts that have not shown a key."""
        return self._of_others(_UNAUTHENTICATED)

    def note(self, sessions: int, unauthenticated: int) -> None:
        """Report to the others what this front has now."""
        self._write(_SESSIONS, sessions)
        self._write(_UNAUTHENTICATED, unauthenticated)

    def hand_over(self) -> None:
        """Count a socket that the parent process hands over: the one number that it writes."""
        self._write(_HANDED_OVER, self._own(_HANDED_OVER) + 1)

    def beat(self, closed: int) -> None:
        """Count a heartbeat; note how many of the front's sockets are closed by now."""
        self._write(_CLOSED, closed)
        self._write(_BEATS, self.beats + 1)

    def clear(self) -> None:
        """Reset the row, since the front has ended."""
        for field in range(_FIELDS):
            self._write(field, 0)

    def _own(self, field: int) -> int:
        return int(self._numbers[self._first + field])

    def _of_others(self, field: int) -> int:
        return sum(self._numbers[field::_FIELDS].tolist()) - self._own(field)

    def _write(self, field: int, value: int) -> None:
        self._numbers[self._first + field] = value
