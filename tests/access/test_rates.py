"""Windows of keys, on a clock that the test turns."""

from __future__ import annotations

import contextlib
import socket
import sqlite3
import time
from math import inf
from pathlib import Path

import pytest

from realtime_tts.access.exchange import Exchange
from realtime_tts.access.fronts_table import FrontsTable
from realtime_tts.access.key import Key, KeyLimits
from realtime_tts.access.rates import Counters, Exceeded, Rates
from realtime_tts.errors import ConfigError
from tests.waiting import until, wait_until


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def key(name: str = "a", **limits: int) -> Key:
    return Key(id=name, name=name, digest="0" * 64, created=0.0, limits=KeyLimits(**limits))


def test_a_window_takes_so_many_and_says_when_the_next_one_begins() -> None:
    clock = Clock()
    rates, limited = Rates(clock), key(turns_per_minute=3)
    for _ in range(3):
        assert rates.take(limited, turns=1) is None
        clock.now += 10
    assert rates.take(limited, turns=1) == Exceeded("turns_per_minute", 3, 30.0)
    clock.now += 29.9
    assert rates.take(limited, turns=1) is not None
    clock.now += 0.2
    assert rates.take(limited, turns=1) is None


def test_a_clock_that_is_set_back_leaves_no_window_open_for_ever() -> None:
    """A machine that starts with a wrong date learns the right one from the network."""
    clock = Clock()
    rates, limited = Rates(clock), key(turns_per_minute=3)
    assert all(rates.take(limited, turns=1) is None for _ in range(3))
    clock.now -= 30
    assert rates.take(limited, turns=1) is None, "the window had not begun by then"
    assert all(rates.take(limited, turns=1) is None for _ in range(2))
    clock.now += 30
    assert rates.take(limited, turns=1) == Exceeded("turns_per_minute", 3, 30.0)


def test_a_clock_that_is_set_back_leaves_no_shared_window_open_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, now = FrontsTable(tmp_path / "limits.db", 0), time.time()
    assert [table.incr("window", 60), table.incr("window", 60)] == [1, 2]
    monkeypatch.setattr("realtime_tts.access.fronts_table.time.time", lambda: now - 86_400)
    assert [table.incr("window", 60), table.incr("window", 60)] == [1, 2]
    assert table.get_expiry("window") == now - 86_400 + 60


def test_what_is_refused_costs_nothing() -> None:
    clock = Clock()
    rates, limited = Rates(clock), key(chars_per_minute=100, chars_per_day=150)
    assert rates.take(limited, chars=90) is None
    assert rates.take(limited, chars=11) is not None
    assert rates.take(limited, chars=10) is None, "the eleven were not counted"
    clock.now += 60
    found = rates.take(limited, chars=51)
    assert found is not None and found.limit == "chars_per_day"
    assert found.seconds == pytest.approx(86_400 - 60)
    assert rates.take(limited, chars=50) is None, "nor by the window that had room"


def test_a_turn_and_its_text_are_taken_together_or_not_at_all() -> None:
    rates, limited = Rates(Clock()), key(turns_per_minute=2, chars_per_minute=10)
    found = rates.take(limited, turns=1, chars=11)
    assert found == Exceeded("chars_per_minute", 10, inf), "no window could hold it"
    assert rates.take(limited, turns=1, chars=5) is None
    found = rates.take(limited, turns=1, chars=6)
    assert found is not None and found.limit == "chars_per_minute"
    assert rates.take(limited, turns=1, chars=5) is None
    found = rates.take(limited, turns=1)
    assert found is not None and found.limit == "turns_per_minute"


def test_what_is_given_back_can_be_taken_again_in_the_same_window() -> None:
    clock = Clock()
    rates, limited = Rates(clock), key(chars_per_minute=10)
    assert rates.take(limited, chars=9) is None
    rates.give_back(limited, chars=4)
    assert rates.take(limited, chars=5) is None
    assert rates.take(limited, chars=1) is not None
    clock.now += 61
    rates.give_back(limited, chars=10)
    assert rates.take(limited, chars=3) is None
    rates.give_back(limited, chars=10)
    assert rates.take(limited, chars=11) is not None, "a window has no more than it had"


def test_what_is_owed_is_counted_though_it_is_too_much() -> None:
    rates, limited = Rates(Clock()), key(chars_per_minute=10, turns_per_minute=1)
    rates.count(limited, turns=2, chars=30)
    assert rates.take(limited, chars=1) is not None
    assert rates.take(limited, turns=1) is not None


def test_keys_and_units_have_windows_of_their_own() -> None:
    rates = Rates(Clock())
    one, other = key("a", turns_per_minute=1, chars_per_minute=1), key("b", turns_per_minute=1)
    assert rates.take(one, turns=1) is None
    assert rates.take(one, chars=1) is None
    assert rates.take(other, turns=1) is None
    assert rates.take(one, turns=1) is not None
    assert rates.take(other, chars=10**9) is None


def test_windows_that_are_over_are_forgotten() -> None:
    clock = Clock()
    rates = Rates(clock)
    for number in range(9_000):
        rates.take(key(f"k{number}", turns_per_minute=5), turns=1)
        clock.now += 1
    assert len(rates.counters.counters) < 5_000


class Servers:
    """Two processes, with what they have in common."""

    def __init__(self, url: str | None, table: Path | None) -> None:
        self.rates = [Rates(), Rates()]
        self.held: list[dict[str, tuple[int, int]]] = [{}, {}]
        self.exchanges = [Exchange(rates.counters, url) for rates in self.rates]
        for number, exchange in enumerate(self.exchanges):
            exchange.here = self.held[number]
            if table is not None:
                exchange.fronts = FrontsTable(table, number)

    def exchange(self) -> None:
        for _ in range(2):
            for number in range(len(self.exchanges)):
                self.meet(number)

    def meet(self, number: int) -> None:
        self.exchanges[number].meet_fronts()
        self.exchanges[number].meet_fleet()


def check_shared_rates(servers: Servers) -> None:
    limited = key(turns_per_minute=10)
    one, other = servers.rates
    for _ in range(6):
        assert one.take(limited, turns=1) is None
    for _ in range(2):
        assert other.take(limited, turns=1) is None
    servers.exchange()
    # Each hears of the other's when it has something to tell.
    assert one.take(limited, turns=1) is None
    servers.exchange()
    assert other.take(limited, turns=1) is None
    servers.exchange()
    found = other.take(limited, turns=1)
    assert found is not None and 0 < found.seconds <= 60
    one.take(limited, turns=1)
    servers.exchange()
    assert one.take(limited, turns=1) is not None


def test_fronts_share_what_is_given_back(tmp_path: Path) -> None:
    servers, limited = Servers(None, tmp_path / "limits.db"), key(chars_per_minute=10)
    one, other = servers.rates
    assert one.take(limited, chars=9) is None
    assert other.take(limited, chars=1) is None
    servers.exchange()
    one.give_back(limited, chars=6)
    servers.exchange()
    assert other.take(limited, chars=6) is not None, "it does not know yet"
    servers.exchange()
    assert other.take(limited, chars=6) is None
    servers.exchange()
    assert other.take(limited, chars=1) is not None


def test_fronts_share_windows(tmp_path: Path) -> None:
    check_shared_rates(Servers(None, tmp_path / "limits.db"))


def test_fronts_go_on_sharing_when_their_file_was_removed(tmp_path: Path) -> None:
    table = tmp_path / "limits.db"
    servers = Servers(None, table)
    servers.held[0]["a"] = (1, 1)
    servers.exchange()
    assert servers.exchanges[1].elsewhere("a") == (1, 1)
    table.unlink()  # an old file in a folder for temporary ones, say
    servers.exchange()
    assert servers.exchanges[1].elsewhere("a") == (1, 1)
    check_shared_rates(servers)


def test_what_other_fronts_had_is_forgotten_while_they_cannot_be_asked(tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir()
    servers = Servers(None, folder / "limits.db")
    servers.held[0]["a"] = (1, 1)
    servers.exchange()
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(sqlite3.OperationalError):
        servers.meet(1)
    assert servers.exchanges[1].elsewhere("a") == (0, 0)
    (tmp_path / "elsewhere").rename(folder)
    servers.meet(1)
    assert servers.exchanges[1].elsewhere("a") == (1, 1)


def test_servers_share_windows_in_redis(redis: str) -> None:
    check_shared_rates(Servers(redis, None))


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1", "redis+cluster://127.0.0.1:1"])
def test_without_its_store_a_server_goes_by_its_own_counts_and_loses_none(url: str) -> None:
    counters = Counters()
    exchange = Exchange(counters, url)
    assert exchange.has_others
    counters.incr("window", 60, 5)
    with pytest.raises(Exception, match="127.0.0.1:1"):
        exchange.meet_fleet()
    assert counters.get("window") == 5
    assert counters.take_unshared() == [("window", 5, 60)]


def of_fronts(folder: Path) -> tuple[Counters, Exchange]:
    """The counters of a front, and what exchanges them with the others' through a table."""
    counters = Counters()
    exchange = Exchange(counters, None)
    exchange.fronts = FrontsTable(folder / "limits.db", 1)
    return counters, exchange


def test_a_store_that_fails_in_the_middle_of_an_exchange_loses_no_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters, exchange = of_fronts(tmp_path)
    names = [f"window {number}" for number in range(4)]
    for name in names:
        counters.incr(name, 60, 5)
    with monkeypatch.context() as failing:
        failing.setattr(exchange.fronts, "incr", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            exchange.meet_fronts()
    assert sorted(name for name, _, _ in counters.take_unshared()) == names


def test_a_store_that_fails_after_it_has_counted_does_not_count_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counters, exchange = of_fronts(tmp_path)
    counters.incr("window", 60, 5)
    with monkeypatch.context() as failing:
        failing.setattr(exchange.fronts, "get_expiry", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            exchange.meet_fronts()
    counters.incr("window", 60, 1)
    exchange.meet_fronts()
    assert counters.get("window") == 6


def check_shared_sessions(servers: Servers) -> None:
    servers.held[0]["a"] = (3, 1)
    servers.held[1]["a"] = (2, 0)
    servers.exchange()
    assert [one.elsewhere("a") for one in servers.exchanges] == [(2, 0), (3, 1)]
    assert servers.exchanges[0].elsewhere("b") == (0, 0)
    servers.held[1].clear()
    servers.exchange()
    assert [one.elsewhere("a") for one in servers.exchanges] == [(0, 0), (3, 1)]


def test_fronts_know_what_is_open_at_the_others_and_forget_one_that_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = Servers(None, tmp_path / "limits.db")
    check_shared_sessions(servers)
    later = time.time() + 4.0
    monkeypatch.setattr("realtime_tts.access.fronts_table.time.time", lambda: later)
    servers.meet(1)
    assert servers.exchanges[1].elsewhere("a") == (0, 0), "the first has ended"


async def test_servers_know_what_is_open_at_the_others_and_forget_one_that_is_killed(
    redis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("realtime_tts.access.fleet_table.SILENT_SECONDS", 10.0)
    servers = Servers(redis, None)
    check_shared_sessions(servers)
    monkeypatch.setattr("realtime_tts.access.fleet_table.SILENT_SECONDS", 0.05)
    servers.meet(0)

    def forgotten() -> bool:
        servers.meet(1)
        return servers.exchanges[1].elsewhere("a") == (0, 0)

    await until(forgotten)


def test_without_its_store_a_server_knows_of_its_own_fronts(tmp_path: Path, redis: str) -> None:
    """A front counts once, though both the table and the store tell of it."""
    servers = Servers(redis, tmp_path / "limits.db")
    check_shared_sessions(servers)
    servers.held[1]["a"] = (1, 1)
    servers.meet(1)
    gone = Exchange(Counters(), "redis://127.0.0.1:1")
    gone.fronts = FrontsTable(tmp_path / "limits.db", 7)
    gone.start()
    try:

        def heard() -> bool:
            servers.exchange()
            return gone.elsewhere("a") != (0, 0)

        wait_until(heard)
        assert gone.elsewhere("a") == (4, 2)
    finally:
        gone.stop()


def test_fronts_do_not_wait_for_a_store_that_does_not_answer(tmp_path: Path) -> None:
    """It takes two seconds to give up each call; the fronts hear of each other all the time."""
    connections: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(0)
        exchange = Exchange(Counters(), f"redis://127.0.0.1:{silent.getsockname()[1]}")
        exchange.fronts, other = (FrontsTable(tmp_path / "limits.db", number) for number in (0, 1))
        exchange.start()
        try:
            for sessions in range(1, 11):
                other.exchange({"a": (sessions, 0)})

                def heard(sessions: int = sessions) -> bool:
                    with contextlib.suppress(BlockingIOError):
                        connections.append(silent.accept()[0])
                    return exchange.elsewhere("a") == (sessions, 0)

                wait_until(heard)
        finally:
            exchange.stop()
            for connection in connections:
                connection.close()
    assert 1 <= len(connections) <= 5


@pytest.mark.parametrize(
    "url",
    ["", "memory://", "redis", "http://x", "async+redis://x"]
    + ["redis+other://x", "redis+cluster://", "redis+cluster://x"],
)
def test_a_store_that_is_none_is_told(url: str) -> None:
    with pytest.raises(ConfigError, match="Redis or Valkey"):
        Exchange(Counters(), url)
