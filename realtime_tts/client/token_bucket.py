"""Keeps the client below the server's message rate, which it enforces by ending the session.

A fast language model sends more deltas a second than that for a while. Speech takes twelve tokens
a second, so waiting a few milliseconds before a delta costs nothing.
"""

from __future__ import annotations

from realtime_tts.protocol.settings import Limits

_MARGIN = 0.9  # messages bunch up on the way, and the server's clock is another


class TokenBucket:
    """A token bucket that says how long to wait. Times in seconds; no clock in here."""

    def __init__(self, limits: Limits) -> None:
        self._rate = limits.messages_per_second * _MARGIN
        # A part of the burst stays for what must never wait: interrupts and ends of turns.
        self._burst = max(1.0, limits.message_burst * 0.5)
        self._tokens = self._burst
        self._now: float | None = None

    def count(self, now: float) -> float:
        """Count a message; how long it has to wait before it is sent."""
        if self._now is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._now) * self._rate)
        self._now = now
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)
