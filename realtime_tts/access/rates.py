"""Rates: how much of a window each key has used: turns and characters a minute, or a day.

The windows are those of the library `limits`. What is asked on the event loop is answered from this
process's memory; where several processes share the limits, `Exchange` brings their counts together.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from limits import RateLimitItem, RateLimitItemPerDay, RateLimitItemPerMinute
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


@dataclass(slots=True)
class Counter:
    """A window of one key: `count` in all processes, of which `unshared` no other knows."""

    count: int
    ends: float
    seconds: int
    unshared: int = 0


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

    # For `Exchange`, in its thread.

    def take_unshared(self) -> list[tuple[str, int, int]]:
        """What was counted here since this was asked last: names, amounts, seconds of windows."""
        with self.lock:
            now = self._clock()
            taken = []
            for name, counter in self.counters.items():
                if counter.unshared and counter.ends > now:
                    taken.append((name, counter.unshared, counter.seconds))
                    counter.unshared = 0
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
    """A limit of `most` is used up; in `seconds` there is a new window."""

    limit: str
    most: int
    seconds: float


class Rates:
    """Of all keys. Never waits."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.counters = Counters(clock)
        self._limiter = FixedWindowRateLimiter(self.counters)
        self._clock = clock

    def take(self, key: Key, unit: str, amount: int) -> Exceeded | None:
        """Use up so many "turns" or "chars" of the key's windows; of none if one has not enough.

        An amount that no window of a limit could hold is refused for ever.
        """
        windows = []
        for limit, window in WINDOWS.items():
            most = getattr(key.limits, limit)
            if most is None or not limit.startswith(unit):
                continue
            item = window(most)
            if not self._limiter.test(item, limit, key.id, cost=amount):
                ends = self._limiter.get_window_stats(item, limit, key.id).reset_time
                return Exceeded(limit, most, max(0.0, ends - self._clock()))
            windows.append((item, limit))
        for item, limit in windows:
            self._limiter.hit(item, limit, key.id, cost=amount)
        return None
