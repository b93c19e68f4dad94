"""How far a listener has heard an utterance: a mirror of what a framework plays as it comes.

Pure; times are seconds on one clock, and arguments.
"""

from __future__ import annotations


class Listener:
    """Hears one utterance after the other. `free_at`: when all that was given has been heard."""

    def __init__(self) -> None:
        self.free_at = 0.0

    def drop(self) -> None:
        """What was given and not heard is thrown away, because the listener speaks."""
        self.free_at = 0.0


class Playback:
    """One utterance at the listener. `seconds`: of sound given; `gaps`: of silence between, because
    sound came late."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._ends_at = 0.0
        self.seconds = 0.0
        self.gaps = 0.0

    def give(self, seconds: float, now: float) -> None:
        """Sound goes to the framework, which plays it behind what it has."""
        free_at = self._listener.free_at
        if self.seconds:
            self.gaps += max(0.0, now - free_at)
        self.seconds += seconds
        self._ends_at = self._listener.free_at = max(now, free_at) + seconds

    def begins(self, now: float) -> None:
        """The framework begins to play now, and not when the first sound was given."""
        self._ends_at = self._listener.free_at = now + self.seconds

    def heard(self, now: float) -> float:
        """Seconds of its sound that have been heard."""
        return max(0.0, self.seconds - max(0.0, self._ends_at - now))

    def over(self, now: float) -> bool:
        """Whether all that was given of it has been heard."""
        return now >= self._ends_at
