"""Exchange: brings together what several processes count of the same keys.

Threads exchange counts ten times a second. Nobody waits for them: limits are decided on the counts
known so far, so a limit may be exceeded by what arrives within a tenth of a second. While the store
cannot be reached, each process uses its own counts and those of the server's other fronts, which do
not go through the store. Counts that a process no longer repeats are forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.util import find_spec
from threading import Event, Thread

from limits.errors import ConfigurationError
from limits.storage import RedisStorage, Storage, storage_from_string

from realtime_tts.access.fleet_table import FleetTable
from realtime_tts.access.fronts_table import FrontsTable, Held
from realtime_tts.access.rates import Counters
from realtime_tts.errors import ConfigError
from realtime_tts.outage import Outage

log = logging.getLogger(__name__)

_SECONDS = 0.1
_CLIENTS = {"redis": "redis", "rediss": "redis", "valkey": "valkey", "valkeys": "valkey"}
"""The Python package for each scheme."""
_STORE_SECONDS = 2.0
"""Seconds that the store may take to answer."""


class Exchange:
    """Exchanges the counts of this process with other fronts and with other servers.

    `url`: address of the store that the servers of a fleet share, as the library `limits` writes
    it (`redis://HOST:6379`, `valkey://…`); None if there is only this server. Raises ConfigError.
    """

    def __init__(self, counters: Counters, url: str | None) -> None:
        self.fronts: FrontsTable | None = None
        """The table that the fronts of this server share; None if there is only one front."""
        self.here: Held = {}
        """Sessions and turns that are open in this process; replaced as a whole."""
        self._at_fronts: Held = {}
        self._in_fleet: Held | None = None
        """Open at all other fronts and servers; None while the store cannot be reached."""
        self._counters = counters
        self._url = url
        self._fleet: tuple[RedisStorage, FleetTable] | None = None
        try:
            self._fleet = None if url is None else _fleet(url)
        except ConfigError:
            raise
        except Exception as error:  # a cluster's client connects at once; `meet_fleet` tries again
            log.debug("the store of limits is away: %s", type(error).__name__)
        self._outages: list[Outage] = []
        self._stopping = Event()
        self._threads: list[Thread] = []

    @property
    def has_others(self) -> bool:
        """Whether there are other fronts or servers to exchange counts with."""
        return self._url is not None or self.fronts is not None

    @property
    def failing(self) -> bool:
        """Whether counts cannot be exchanged now."""
        return any(outage.present for outage in self._outages)

    def start(self) -> None:
        """Start the threads that exchange counts, if there are other fronts or servers."""
        found = ((self.fronts, self.meet_fronts), (self._url, self.meet_fleet))
        works = [work for table, work in found if table is not None]
        self._threads = [
            Thread(target=self._repeat, args=(work,), name="limits", daemon=True) for work in works
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the threads, and wait until they have ended."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def elsewhere(self, key_id: str) -> tuple[int, int]:
        """Return the sessions and turns that the key has at other fronts and other servers."""
        held = self._at_fronts if self._in_fleet is None else self._in_fleet
        return held.get(key_id, (0, 0))

    def _repeat(self, work: Callable[[], None]) -> None:
        outage = Outage(log, "limits.not_shared", "limits.shared_again")
        self._outages.append(outage)
        while not self._stopping.wait(_SECONDS):
            try:
                work()
            except Exception as error:  # whatever a store's client raises: each has its own
                outage.begin(why=type(error).__name__)  # its text may have the address's password
            else:
                outage.end()

    def meet_fronts(self) -> None:
        """Exchange open sessions and turns with the other fronts.

        Without a fleet, exchange the counts of the rate limits, too.
        """
        if self.fronts is None:
            return
        try:
            self._at_fronts = self.fronts.exchange(self.here)
        except BaseException:
            self._at_fronts = {}
            raise
        if self._url is None:
            self._settle(self.fronts)

    def meet_fleet(self) -> None:
        """Exchange open sessions and turns, and counts of rate limits, with other servers."""
        if self._url is None:
            return
        try:
            store, table = self._fleet = self._fleet or _fleet(self._url)
            self._in_fleet = table.exchange(self.here)
        except BaseException:
            self._in_fleet = None
            raise
        self._settle(store)

    def _settle(self, store: Storage | FrontsTable) -> None:
        """Add this process's new counts to the store, and take over the totals of all processes."""
        left = self._counters.take_unshared()
        try:
            while left:
                name, amount, seconds = left[-1]
                count = store.incr(name, seconds, amount)
                left.pop()  # it is counted there, also if the next call fails
                self._counters.settle(name, count, store.get_expiry(name))
        finally:
            for name, amount, _ in left:  # the store has failed
                self._counters.give_back(name, amount)


def _fleet(url: str) -> tuple[RedisStorage, FleetTable]:
    """Return the store at that address, and the fleet's table in it. Only a cluster's client
    connects, and raises an error of its own if it cannot. Raises ConfigError."""
    scheme, given, rest = url.partition("://")
    store, _, kind = scheme.partition("+")
    client = _CLIENTS.get(store)
    try:
        if not given or client is None or (kind and not rest):
            raise ValueError("another scheme, or no host")
        found = storage_from_string(
            url, socket_timeout=_STORE_SECONDS, socket_connect_timeout=_STORE_SECONDS
        )
    except (ValueError, ConfigurationError):  # not shown: the address may have a password
        if client is not None and find_spec(client) is None:
            raise ConfigError(
                f"--limits-store {scheme}:// needs a client that is not installed: "
                "pip install redis, or valkey for valkey://"
            ) from None
        raise ConfigError(
            "limits are shared in Redis or Valkey, and --limits-store is its address, such as "
            "redis://HOST:6379 or redis+cluster://HOST:6379,HOST:6379; what was given is none"
        ) from None
    assert isinstance(found, RedisStorage), "no async+ address was given"
    return found, FleetTable(found.storage)
