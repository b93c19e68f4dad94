"""A token bucket: how often something may be done, as the server and the client count it."""

from __future__ import annotations


class TokenBucket:
    """`rate` tokens per second, at most `burst` at once; full at first. Times are in seconds, on a
    clock that is never negative; the bucket reads no clock."""

    __slots__ = ("_at", "_burst", "_left", "_rate")

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._at = burst, 0.0

    def change(self, rate: float, burst: float) -> None:
        """Use another rate and burst from now on."""
        self._rate, self._burst = rate, burst

    def take(self, now: float) -> bool:
        """Use up a token; return False if none is left."""
        self._refill(now)
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def owe(self, now: float) -> float:
        """Use up a token, even one that is not there yet; return the seconds to wait for it."""
        self._refill(now)
        self._left -= 1
        return max(0.0, -self._left / self._rate)

    def _refill(self, now: float) -> None:
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
