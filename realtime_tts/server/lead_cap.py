"""LeadCap: how far the engine may be ahead of a listener, or of a client that saves the sound."""

from __future__ import annotations

from tts_scheduler import Playback

_EVERY = 1.0  # seconds of sound


class LeadCap:
    """`saved`: made as fast as it is taken. That may be so far ahead of what was taken, not of what
    is heard, and the engine is told anew now and then."""

    def __init__(self, seconds: float, *, saved: bool) -> None:
        self._seconds, self._saved = seconds, saved
        self._due = 0.0  # seconds sent, from which on the engine is told

    def seconds(self, playback: Playback, now: float) -> float:
        """What the engine is told."""
        return self._seconds + playback.lead(now) if self._saved else self._seconds

    def is_due(self, playback: Playback) -> bool:
        """Whether it is to be told anew; asked once for each time."""
        if not self._saved or playback.sent_seconds < self._due:
            return False
        self._due = playback.sent_seconds + _EVERY
        return True
