"""Rates: how much of a window each key has used: turns and characters a minute, or a day.

The windows are those of the library `limits`. What is asked on the event loop is answered from this
process's memory; where several processes share the limits, `Exchange` brings their counts together.
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
"""Counters of windows that are over are forgotten when there are twice as many as were in use."""

WINDOWS: dict[str, Callable[[int], RateLimitItem]] = {
    "turns_per_minute": RateLimitItemPerMinute,
    "chars_per_minute": RateLimitItemPerMinute,
    "chars_per_day": RateLimitItemPerDay,
}
"""By the names of `KeyLimits`."""

MOST_RESUMES = 8
"""So often may a turn go on on another socket in an hour without counting again."""


@dataclass(slots=True)
class Counter:
    """A window of one key: `count` in all processes, of which `unshared` no other knows. `full`:
    something was refused since others were asked, which may have given something back."""

    count: int
    ends: float
    seconds: int
    unshared: int = 0
    full: bool = False


class Counters(Storage):
    """The windows in memory. `clock` gives seconds since 1970."""

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
        """So much less was counted, if the window has so much."""
        with self.lock:
            if (counter := self._counter(name)) is not None:
                amount = min(amount, counter.count)
                counter.count -= amount
                counter.unshared -= amount

    def note_full(self, name: str) -> None:
        """Something was refused for the want of it."""
        with self.lock:
            if (counter := self._counter(name)) is not None:
                counter.full = True

    # For `Exchange`, in its thread.

    def take_unshared(self) -> list[tuple[str, int, int]]:
        """What was counted here since this was asked last: names, amounts, seconds of windows.
        Nothing, perhaps, of a window that is full."""
        with self.lock:
            now = self._clock()
            taken = []
            for name, counter in self.counters.items():
                if (counter.unshared or counter.full) and counter.ends > now:
                    taken.append((name, counter.unshared, counter.seconds))
                    counter.unshared, counter.full = 0, False
            return taken

    def give_back(self, name: str, amount: int) -> None:
        """It could not be shared."""
        with self.lock:
            if (counter := self.counters.get(name)) is not None:
                counter.unshared += amount

    def settle(self, name: str, count: int, ends: float) -> None:
        """All processes have counted so much, in a window that ends then."""
        with self.lock:
            if (counter := self.counters.get(name)) is not None:
                counter.count, counter.ends = count + counter.unshared, ends

    def _counter(self, key: str) -> Counter | None:
        counter = self.counters.get(key)
        return None if counter is None or counter.ends <= self._clock() else counter

    def _sweep(self) -> None:
        if len(self.counters) > self._sweep_at:
            now = self._clock()
            self.counters = {name: one for name, one in self.counters.items() if one.ends > now}
            self._sweep_at = max(_SWEEP, 2 * len(self.counters))


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A limit of `most` is used up; in `seconds` there is a new window. Infinite: none could hold
    what was asked for."""

    limit: str
    most: int
    seconds: float


class Rates:
    """Of all keys. Never waits."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.counters = Counters(clock)
        self._limiter = FixedWindowRateLimiter(self.counters)
        self._clock = clock

    def take(self, key: Key, *, turns: int = 0, chars: int = 0) -> Exceeded | None:
        """Use up so much of the key's windows; of none if one has not enough."""
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
        """Use up so much of the key's windows, though it may be more than they have."""
        for limit, item, amount in _windows(key, turns, chars):
            self._limiter.hit(item, limit, key.id, cost=amount)

    def give_back(self, key: Key, *, turns: int = 0, chars: int = 0) -> None:
        """So much of what was used up is free again, in windows that are not over."""
        for limit, item, amount in _windows(key, turns, chars):
            self.counters.lower(item.key_for(limit, key.id), amount)

    def resumes(self, key: Key, turn: str) -> bool:
        """Whether this turn may go on on another socket once more. Counted, too."""
        return self._limiter.hit(RateLimitItemPerHour(MOST_RESUMES), "resumes", key.id, turn)


def _windows(key: Key, turns: int, chars: int) -> Iterator[tuple[str, RateLimitItem, int]]:
    """The limits that this would use up: name, window, and how much of it."""
    for limit, window in WINDOWS.items():
        most, amount = getattr(key.limits, limit), turns if limit.startswith("turns") else chars
        if most is not None and amount:
            yield limit, window(most), amount
