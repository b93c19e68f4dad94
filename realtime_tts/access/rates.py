"""Rates: how much of each rate limit a key has used: turns and characters a minute or a day.

The windows are those of the library `limits`. The event loop gets its answers from this process's
memory; where several processes share the limits, `Exchange` brings their counts together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from threading import Lock

from limits import (
    RateLimitItem,
    RateLimitItemPerDay,
    RateLimitItemPerHour,
    RateLimitItemPerMinute,
)
from limits.storage import Storage
from limits.strategies import FixedWindowRateLimiter

from realtime_tts.access.key import Key

_SWEEP = 4_096
"""Expired counters are removed when there are twice as many counters as were in use at the last
removal, and at least this many."""

WINDOWS: dict[str, Callable[[int], RateLimitItem]] = {
    "turns_per_minute": RateLimitItemPerMinute,
    "chars_per_minute": RateLimitItemPerMinute,
    "chars_per_day": RateLimitItemPerDay,
}
"""The kind of window of each rate limit, by its name in `KeyLimits`."""

MOST_RESUMES = 8
"""How often in an hour a turn may resume on another socket without being counted again."""


@dataclass(slots=True)
class Counter:
    """How much of one window a key has used: `count` in all processes, of which `unshared` is not
    known to the others yet. It `ends` at that time (seconds since 1970) and lasts `seconds`.
    `full`: a request was refused since the last exchange, so the next one asks for the total."""

    count: int
    ends: float
    seconds: int
    unshared: int = 0
    full: bool = False

    def lasts(self, now: float) -> bool:
        """Return whether the window is the present one. One that ends later than any window that
        begins now was begun by a clock that has been set back since."""
        return now < self.ends <= now + self.seconds


class Counters(Storage):
    """The counters of all windows, in memory. `clock` gives seconds since 1970. Thread-safe."""

    STORAGE_SCHEME = None
    base_exceptions = ()

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self.lock = Lock()
        self.counters: dict[str, Counter] = {}
        self._clock = clock
        self._sweep_at = _SWEEP

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        with self.lock:
            counter = self._counter(key)
            if counter is None:
                counter = Counter(0, self._clock() + expiry, expiry)
                self.counters[key] = counter
                self._sweep()
            counter.count += amount
            counter.unshared += amount
            return counter.count

    def get(self, key: str) -> int:
        with self.lock:
            counter = self._counter(key)
            return 0 if counter is None else counter.count

    def get_expiry(self, key: str) -> float:
        with self.lock:
            counter = self._counter(key)
            return self._clock() if counter is None else counter.ends

    def check(self) -> bool:
        return True

    def reset(self) -> int | None:
        with self.lock:
            count = len(self.counters)
            self.counters.clear()
            return count

    def clear(self, key: str) -> None:
        with self.lock:
            self.counters.pop(key, None)

    def lower(self, name: str, amount: int) -> None:
        """Take `amount` off the counter, but no more than it has."""
        with self.lock:
            if (counter := self._counter(name)) is not None:
                amount = min(amount, counter.count)
                counter.count -= amount
                counter.unshared -= amount

    def note_full(self, name: str) -> None:
        """Note that a request was refused because this window is used up."""
        with self.lock:
            if (counter := self._counter(name)) is not None:
                counter.full = True

    # For `Exchange`, in its thread.

    def take_unshared(self) -> list[tuple[str, int, int]]:
        """Return what was counted here since the last call: names, amounts, seconds of windows.

        The amount may be 0 for a window that is full: its total is wanted.
        """
        with self.lock:
            now = self._clock()
            taken = []
            for name, counter in self.counters.items():
                if (counter.unshared or counter.full) and counter.lasts(now):
                    taken.append((name, counter.unshared, counter.seconds))
                    counter.unshared, counter.full = 0, False
            return taken

    def give_back(self, name: str, amount: int) -> None:
        """Add `amount` to the unshared part again, because the shared store did not take it."""
        with self.lock:
            if (counter := self.counters.get(name)) is not None:
                counter.unshared += amount

    def settle(self, name: str, count: int, ends: float) -> None:
        """Set the total of all processes, in a window that ends at `ends` (seconds since 1970)."""
        with self.lock:
            if (counter := self.counters.get(name)) is not None:
                counter.count, counter.ends = count + counter.unshared, ends

    def _counter(self, key: str) -> Counter | None:
        counter = self.counters.get(key)
        return counter if counter is not None and counter.lasts(self._clock()) else None

    def _sweep(self) -> None:
        if len(self.counters) > self._sweep_at:
            now = self._clock()
            self.counters = {name: one for name, one in self.counters.items() if one.lasts(now)}
            self._sweep_at = max(_SWEEP, 2 * len(self.counters))


@dataclass(frozen=True, slots=True)
class Exceeded:
    """The limit of `most` is used up, and a new window begins in `seconds`. These are infinite if
    more was asked for than a whole window allows."""

    limit: str
    most: int
    seconds: float


class Rates:
    """The rate limits of all keys, and what each has used of them. Never blocks."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.counters = Counters(clock)
        self._limiter = FixedWindowRateLimiter(self.counters)
        self._clock = clock

    def take(self, key: Key, *, turns: int = 0, chars: int = 0) -> Exceeded | None:
        """Count turns and characters, or count nothing and return the limit that is exceeded."""
        for limit, item, amount in _windows(key, turns, chars):
            if amount > item.amount:
                return Exceeded(limit, item.amount, inf)
            if not self._limiter.test(item, limit, key.id, cost=amount):
                self.counters.note_full(item.key_for(limit, key.id))
                ends = self._limiter.get_window_stats(item, limit, key.id).reset_time
                return Exceeded(limit, item.amount, max(0.0, ends - self._clock()))
        self.count(key, turns=turns, chars=chars)
        return None

    def count(self, key: Key, *, turns: int = 0, chars: int = 0) -> None:
        """Count turns and characters, even beyond the limits."""
        for limit, item, amount in _windows(key, turns, chars):
            self._limiter.hit(item, limit, key.id, cost=amount)

    def give_back(self, key: Key, *, turns: int = 0, chars: int = 0) -> None:
        """Take turns and characters off the counts again, in windows that have not ended."""
        for limit, item, amount in _windows(key, turns, chars):
            self.counters.lower(item.key_for(limit, key.id), amount)

    def resumes(self, key: Key, turn: str) -> bool:
        """Return whether this turn may resume on another socket once more, and count that."""
        return self._limiter.hit(RateLimitItemPerHour(MOST_RESUMES), "resumes", key.id, turn)


def _windows(key: Key, turns: int, chars: int) -> Iterator[tuple[str, RateLimitItem, int]]:
    """Yield the limits that apply: their name, their window, and the amount to count."""
    for limit, window in WINDOWS.items():
        most, amount = getattr(key.limits, limit), turns if limit.startswith("turns") else chars
        if most is not None and amount:
            yield limit, window(most), amount
