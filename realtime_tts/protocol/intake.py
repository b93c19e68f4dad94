"""How many messages a client may send, and how many of them may be bad."""

from __future__ import annotations

from collections import deque

from realtime_tts.protocol.settings import Limits
from realtime_tts.protocol.token_bucket import TokenBucket


class Intake:
    """A token bucket for messages and a sliding window for bad ones. Times are in seconds.

    `bad`: the times of the client's bad messages on other sockets; new ones are appended.
    """

    def __init__(self, limits: Limits, bad: deque[float] | None = None) -> None:
        self._limits = limits
        self._bucket = TokenBucket(limits.messages_per_second, limits.message_burst)
        self._bad = deque[float](maxlen=limits.max_bad_messages) if bad is None else bad

    def admits(self, now: float) -> bool:
        """Count one message; return False if it came too soon."""
        return self._bucket.take(now)

    def tolerates_bad(self, now: float) -> bool:
        """Count one bad message; return False if there were too many within the window."""
        self._bad.append(now)
        full = len(self._bad) >= self._limits.max_bad_messages
        window = self._limits.bad_message_window_ms / 1000
        return not (full and now - self._bad[0] <= window)
