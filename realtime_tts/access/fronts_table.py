"""FrontsTable: open sessions and turns, and counters of limits, of all fronts of one server.

It is a small database in the fronts' private folder, which is removed when the server ends. One
thread of each front uses it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

Held = Mapping[str, tuple[int, int]]
"""Number of open sessions and of open turns, by the id of the key."""

SILENT_SECONDS = 3.0
"""Seconds after which a process that reports nothing counts as ended."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS held (
  front INTEGER, key TEXT, sessions INTEGER, turns INTEGER, at REAL, PRIMARY KEY (front, key));
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, count INTEGER, ends REAL);
"""


def sums(entries: Iterable[Held]) -> dict[str, tuple[int, int]]:
    """Return the sessions and turns of each key, summed over all entries."""
    found: dict[str, tuple[int, int]] = {}
    for entry in entries:
        for key, (sessions, turns) in entry.items():
            before = found.get(key, (0, 0))
            found[key] = before[0] + sessions, before[1] + turns
    return found


class FrontsTable:
    """The table that the fronts of a server share, as front number `front` uses it.

    A file that was removed, or that failed, is opened or made again by the next call. All methods
    raise sqlite3.Error.
    """

    def __init__(self, path: Path, front: int) -> None:
        self._path, self._front = path, front
        self._database: sqlite3.Connection | None = None
        self._inode = 0

    def exchange(self, here: Held) -> dict[str, tuple[int, int]]:
        """Write what is open here; return what each key has open at the other fronts."""
        now = time.time()
        rows = [(self._front, key, *held, now) for key, held in here.items()]
        with self._writing() as database:
            database.execute("DELETE FROM held WHERE front = ?", (self._front,))
            database.executemany("INSERT INTO held VALUES (?, ?, ?, ?, ?)", rows)
            found = database.execute(
                "SELECT key, sum(sessions), sum(turns) FROM held WHERE front != ? AND at > ? "
                "GROUP BY key",
                (self._front, now - SILENT_SECONDS),
            ).fetchall()
        return {key: (sessions, turns) for key, sessions, turns in found}

    def incr(self, name: str, expiry: int, amount: int = 1) -> int:
        """Add `amount` to a counter and return the sum; a new counter's window begins now."""
        with self._writing() as database:
            now = time.time()  # not before the lock: another front may begin the window meanwhile
            database.execute("DELETE FROM counters WHERE ends <= ?", (now,))
            # Later than any that begins now: the clock has been set back since.
            database.execute(
                "DELETE FROM counters WHERE name = ? AND ends > ?", (name, now + expiry)
            )
            row = database.execute(
                "INSERT INTO counters VALUES (?, ?, ?) "
                "ON CONFLICT (name) DO UPDATE SET count = count + excluded.count RETURNING count",
                (name, amount, now + expiry),
            ).fetchone()
        return int(row[0])

    def get_expiry(self, name: str) -> float:
        """Return when the counter's window ends, in seconds since 1970."""
        with self._writing() as database:
            row = database.execute("SELECT ends FROM counters WHERE name = ?", (name,)).fetchone()
        return time.time() if row is None else float(row[0])

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Run one transaction. If it fails, the connection is closed, too."""
        database = self._open()
        try:
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")
        except BaseException:
            self._close()
            raise

    def _open(self) -> sqlite3.Connection:
        """Return a connection to the file that is at the path now."""
        if self._database is not None and self._inode != _inode(self._path):
            self._close()  # a removed file can still be read and written through an open connection
        if self._database is None:
            self._database = sqlite3.connect(self._path, isolation_level=None)
            self._database.execute("PRAGMA synchronous = OFF")  # it need not outlive the machine
            self._database.executescript(_SCHEMA)
            self._inode = _inode(self._path)
        return self._database

    def _close(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
