"""FrontsTable: what the fronts of one server tell each other of the keys: a small database in their
private folder, which ends with the server. Used by one thread of each front."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

Held = Mapping[str, tuple[int, int]]
"""Sessions and turns that are open, by the ids of keys."""

SILENT_SECONDS = 3.0
"""What a process has told holds for so long: it may have ended."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS held (
  front INTEGER, key TEXT, sessions INTEGER, turns INTEGER, at REAL, PRIMARY KEY (front, key));
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, count INTEGER, ends REAL);
"""


def sums(entries: Iterable[Held]) -> dict[str, tuple[int, int]]:
    """What is open of each key, in all of these together."""
    found: dict[str, tuple[int, int]] = {}
    for entry in entries:
        for key, (sessions, turns) in entry.items():
            before = found.get(key, (0, 0))
            found[key] = before[0] + sessions, before[1] + turns
    return found


class FrontsTable:
    """`front`: the number of this one. A file that was removed or cannot be used is opened, or
    made, again with the next call."""

    def __init__(self, path: Path, front: int) -> None:
        self._path, self._front = path, front
        self._database: sqlite3.Connection | None = None
        self._inode = 0

    def exchange(self, here: Held) -> dict[str, tuple[int, int]]:
        """Tell what is open here; gives what is open at the other fronts, of each key. Raises
        sqlite3.Error, as the others do."""
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
        """Add to a counter, whose window begins with that if there is none; gives the sum."""
        now = time.time()
        with self._writing() as database:
            database.execute("DELETE FROM counters WHERE ends <= ?", (now,))
            row = database.execute(
                "INSERT INTO counters VALUES (?, ?, ?) "
                "ON CONFLICT (name) DO UPDATE SET count = count + excluded.count RETURNING count",
                (name, amount, now + expiry),
            ).fetchone()
        return int(row[0])

    def get_expiry(self, name: str) -> float:
        """When the counter's window ends, in seconds since 1970."""
        with self._writing() as database:
            row = database.execute("SELECT ends FROM counters WHERE name = ?", (name,)).fetchone()
        return time.time() if row is None else float(row[0])

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction; what fails it is the end of this connection, too."""
        database = self._open()
        try:
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")
        except BaseException:
            self._close()
            raise

    def _open(self) -> sqlite3.Connection:
        """The database that all fronts have: the file that is at the path now."""
        if self._database is not None and self._inode != _inode(self._path):
            self._close()  # to who has it still open, a file that was removed seems to be there
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
