"""Usage: how much each key has used on each day, in a database that outlives the server.

Counts are added up in memory and written by a thread twice a second, so a server that is killed
loses a second at most, and the event loop never waits for the database. All processes of a server,
and all servers, may share one database: each adds what it has counted itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from threading import Event, Lock, Thread
from typing import Any

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql, sqlite

from realtime_tts.access.key import Key
from realtime_tts.errors import ConfigError
from realtime_tts.logs import event
from realtime_tts.outage import Outage
from realtime_tts.protocol.messages import SAMPLE_RATE

log = logging.getLogger(__name__)

_WRITE_SECONDS = 0.5
_BUSY_SECONDS = 10.0
"""Seconds that SQLite waits for another process that is writing."""
_COUNTS = ("turns", "characters", "audio_seconds", "refusals")

_TABLE = sql.Table(
    "realtime_tts_usage",
    sql.MetaData(),
    sql.Column("day", sql.Date, primary_key=True),
    sql.Column("key_id", sql.String(64), primary_key=True),
    sql.Column("name", sql.String(64), nullable=False),
    sql.Column("turns", sql.BigInteger, nullable=False),
    sql.Column("characters", sql.BigInteger, nullable=False),
    sql.Column("audio_seconds", sql.Double, nullable=False),
    sql.Column("refusals", sql.BigInteger, nullable=False),
)


@dataclass(slots=True)
class Used:
    """How much one key used on one day, since the last write to the database."""

    name: str
    turns: int = 0
    characters: int = 0
    audio_seconds: float = 0.0
    refusals: int = 0

    def counts(self) -> dict[str, Any]:
        """Return the counts by the names of their columns."""
        return {name: getattr(self, name) for name in _COUNTS}


class Usage:
    """Counts the usage of keys and writes it to the database at `url`, an address of SQLAlchemy:
    `sqlite:////FILE` or `postgresql+psycopg://…`. Raises ConfigError for any other address.
    `clock` gives seconds since 1970; days are those of UTC. Thread-safe."""

    def __init__(self, url: str, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock, self._writing = Lock(), Lock()
        self._counted: dict[tuple[date, str], Used] = {}
        self._engine = _engine(url)
        self._is_there = False  # the table
        self._stopping = Event()
        self.outage = Outage(log, "usage.not_written", "usage.written_again")
        self._thread = Thread(target=self._run, name="usage", daemon=True)

    # Counting, on the event loop.

    def spoke(self, key: Key, turns: int, samples: int, chars: int) -> None:
        """Count a finished turn, or (`turns` 0) the rest of one that was counted elsewhere."""
        with self._lock:
            used = self._used(key)
            used.turns += turns
            used.characters += chars
            used.audio_seconds += samples / SAMPLE_RATE

    def refused(self, key: Key) -> None:
        """Count a request that was refused because of the key's limits."""
        with self._lock:
            self._used(key).refusals += 1

    def _used(self, key: Key) -> Used:
        day = datetime.fromtimestamp(self._clock(), UTC).date()
        return self._counted.setdefault((day, key.id), Used(key.name))

    # Writing, in a thread.

    def start(self) -> None:
        """Start the thread that writes."""
        self._thread.start()

    def stop(self) -> None:
        """Write what was counted, and end the thread. Waits for the database. What it does not take
        is in the log, to be added by hand."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        for (day, key_id), used in sorted(self._counted.items()):
            event(log, logging.ERROR, "usage.lost", day=f"{day}", key=key_id, **used.counts())
        self._engine.dispose()

    def _run(self) -> None:
        while not self._stopping.wait(_WRITE_SECONDS):
            self._try_to_write()
        self._try_to_write()

    def _try_to_write(self) -> None:
        """Write what was counted; if that fails, keep it for the next time."""
        try:
            self.write()
        except sql.exc.SQLAlchemyError as error:
            self._is_there = False  # the next database at this address may be another one
            self.outage.begin(why=self._why(error))
        else:
            self.outage.end()

    def write(self) -> None:
        """Add what was counted to the database. What another thread is writing is there, too, then.

        Raises SQLAlchemyError, also if nothing was counted and the table cannot be made: so an
        address that is wrong is told at the start. Then nothing was written, and the counts are
        kept.
        """
        with self._writing:
            self._make_table()
            with self._lock:
                counted, self._counted = self._counted, {}
            if not counted:
                return
            try:
                self._insert(counted)
            except BaseException:
                self._give_back(counted)
                raise

    def _insert(self, counted: dict[tuple[date, str], Used]) -> None:
        with self._engine.begin() as connection:
            for (day, key_id), used in sorted(counted.items()):
                connection.execute(self._added(day, key_id, used))

    def _give_back(self, counted: dict[tuple[date, str], Used]) -> None:
        with self._lock:
            for place, used in counted.items():
                more = self._counted.setdefault(place, Used(used.name))
                for name in _COUNTS:
                    setattr(more, name, getattr(more, name) + getattr(used, name))

    def _added(self, day: date, key_id: str, used: Used) -> sql.Executable:
        insert = postgresql.insert if self._engine.dialect.name == "postgresql" else sqlite.insert
        row = insert(_TABLE).values(day=day, key_id=key_id, name=used.name, **used.counts())
        sums = {name: _TABLE.c[name] + row.excluded[name] for name in _COUNTS}
        return row.on_conflict_do_update(
            index_elements=["day", "key_id"], set_={"name": row.excluded.name, **sums}
        )

    def _make_table(self) -> None:
        if self._is_there:
            return
        made = sql.schema.CreateTable(_TABLE, if_not_exists=True)
        try:
            with self._engine.begin() as connection:
                connection.execute(made)
        except sql.exc.SQLAlchemyError:  # PostgreSQL, where another process made it just now
            if not sql.inspect(self._engine).has_table(_TABLE.name):
                raise
        self._is_there = True

    def _why(self, error: sql.exc.SQLAlchemyError) -> str:
        """Which database, and what its driver says, without SQL's values. Neither has a password:
        `_engine` takes no address in which a part of it would be the host."""
        said = str(error.orig) if isinstance(error, sql.exc.DBAPIError) else type(error).__name__
        return f"{self._engine.url.database}: {' '.join(said.split())}"

    # Reading, in a thread.

    def days(self, key_id: str | None, count: int) -> list[dict[str, Any]]:
        """Return the usage of a key, or of all keys for None, in the last `count` days.

        There is a row for each day and key that has some; today is the last day. Raises OSError if
        the database cannot be reached.
        """
        try:
            self.write()
            return self._days(key_id, count)
        except sql.exc.SQLAlchemyError as error:
            self._is_there = False  # the next database at this address may be another one
            raise OSError(f"the database for usage: {self._why(error)}") from None

    def _days(self, key_id: str | None, count: int) -> list[dict[str, Any]]:
        first = datetime.fromtimestamp(self._clock(), UTC).date() - timedelta(days=count - 1)
        asked = sql.select(_TABLE).where(_TABLE.c.day >= first).order_by(_TABLE.c.day)
        if key_id is not None:
            asked = asked.where(_TABLE.c.key_id == key_id)
        with self._engine.connect() as connection:
            return [dict(row) for row in connection.execute(asked).mappings()]


def _engine(url: str) -> sql.Engine:
    try:
        parsed = sql.make_url(url)
        local = parsed.get_backend_name() == "sqlite"
        if not local and parsed.get_backend_name() != "postgresql":
            raise ConfigError("usage is recorded in SQLite or PostgreSQL (--usage-database)")
        if "@" in (parsed.host or ""):
            raise ConfigError(
                "--usage-database has more than one @: write one in a password as %40"
            )
        if not local:
            return sql.create_engine(parsed, pool_pre_ping=True)
        # Opened each time: an open file stays the same one when another takes its place.
        options = {"timeout": _BUSY_SECONDS}
        return sql.create_engine(parsed, connect_args=options, poolclass=sql.pool.NullPool)
    except (sql.exc.ArgumentError, ModuleNotFoundError) as error:  # the URL may hold a password
        what = f"{error}" if isinstance(error, ModuleNotFoundError) else "it is no address"
        raise ConfigError(
            f"the database for usage cannot be used: {what}; an address looks like "
            "sqlite:////var/lib/tts/usage.db or postgresql+psycopg://USER:PASSWORD@HOST/NAME"
        ) from None
