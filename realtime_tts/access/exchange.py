"""Exchange: brings together what several processes count of the same keys.

A thread does it ten times a second, and nobody waits for it: limits are decided on what is known.
So before all know that a limit is reached, as much more can come as comes in a tenth of a second.
While the store cannot be reached, each process goes by its own counts.
"""

from __future__ import annotations

import logging
from threading import Event, Thread

from limits.errors import ConfigurationError
from limits.storage import RedisStorage, Storage, storage_from_string

from realtime_tts.access.fleet_table import FleetTable
from realtime_tts.access.fronts_table import FrontsTable, Held
from realtime_tts.access.rates import Counters
from realtime_tts.errors import ConfigError
from realtime_tts.logs import event

log = logging.getLogger(__name__)

_SECONDS = 0.1
_STORE_SECONDS = 2.0
"""How long the store may take to answer."""


class Exchange:
    """`url`: of the store that servers of a fleet have in common, as `limits` has it
    (`redis://HOST:6379`, `valkey://…`); None: there is but this server. Raises ConfigError."""

    def __init__(self, counters: Counters, url: str | None) -> None:
        self.fronts: FrontsTable | None = None
        """Where the fronts of this server tell each other; None: it has one."""
        self.here: Held = {}
        """What is open at this process; replaced as a whole."""
        self._elsewhere: Held = {}
        self._counters = counters
        self._store = None if url is None else _store(url)
        self._fleet = None if self._store is None else FleetTable(self._store.storage)
        self._stopping = Event()
        self._failing = False
        self._thread = Thread(target=self._run, name="limits", daemon=True)

    @property
    def has_others(self) -> bool:
        """Whether there is anybody to exchange with."""
        return self._store is not None or self.fronts is not None

    def start(self) -> None:
        """Begin, if there is anybody to exchange with."""
        if self.has_others:
            self._thread.start()

    def stop(self) -> None:
        """End. Waits for the thread."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def elsewhere(self, key_id: str) -> tuple[int, int]:
        """Sessions and turns that the key has at other fronts, and at other servers of a fleet."""
        return self._elsewhere.get(key_id, (0, 0))

    def _run(self) -> None:
        while not self._stopping.wait(_SECONDS):
            try:
                self.round()
            except Exception as error:  # whatever a store's client raises: each has its own
                if not self._failing:
                    why = type(error).__name__  # its text may have the address, with a password
                    event(log, logging.ERROR, "limits.not_shared", why=why)
                self._failing = True
            else:
                if self._failing:
                    event(log, logging.INFO, "limits.shared_again")
                self._failing = False

    def round(self) -> None:
        """Tell what this process has counted, and learn what all have."""
        if self.fronts is not None:
            at_fronts = self.fronts.exchange(self.here)
            if self._fleet is None or self._failing:
                self._elsewhere = at_fronts
        if self._fleet is not None:
            self._elsewhere = self._fleet.exchange(self.here)
        store: Storage | FrontsTable | None = self._store or self.fronts
        if store is None:
            return
        for name, amount, seconds in self._counters.take_unshared():
            try:
                count, ends = store.incr(name, seconds, amount), store.get_expiry(name)
            except BaseException:
                self._counters.give_back(name, amount)
                raise
            self._counters.settle(name, count, ends)


def _store(url: str) -> RedisStorage:
    try:
        kinds = ("redis", "valkey")
        if not url.startswith(kinds):
            raise ConfigurationError("")
        found = storage_from_string(
            url, socket_timeout=_STORE_SECONDS, socket_connect_timeout=_STORE_SECONDS
        )
    except (ConfigurationError, ValueError):
        raise ConfigError(
            "limits are shared in Redis or Valkey (--limits-store redis://HOST:6379), whose "
            "client must be installed: pip install redis, or valkey"
        ) from None
    assert isinstance(found, RedisStorage), "no async+ address was given"
    return found
