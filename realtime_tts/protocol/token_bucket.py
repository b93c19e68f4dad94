"""A token bucket: how often something may be done, by the server's count and by the client's."""

from __future__ import annotations


class TokenBucket:
    """`rate` tokens a second, and at most `burst` at once; full at first. Times in seconds, on a
    clock that is not below 0; no clock in here."""

    __slots__ = ("_at", "_burst", "_left", "_rate")

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._at = burst, 0.0

    def change(self, rate: float, burst: float) -> None:
        """From now on there is so much."""
        self._rate, self._burst = rate, burst

    def take(self, now: float) -> bool:
        """Use one up; False if none is left."""
        self._refill(now)
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def owe(self, now: float) -> float:
        """Use one up, also one that is not there yet; how long it has to be waited for."""
        self._refill(now)
        self._left -= 1
        return max(0.0, -self._left / self._rate)

    def _refill(self, now: float) -> None:
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
