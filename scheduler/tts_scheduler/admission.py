"""Admission: take a new turn, let it wait a moment, or say at once when to come back.

A turn in progress is worth more than a new one. Capacity is how many turns the machine can speak
at the same time; a held or parked turn still counts, because it will be back.
"""

from __future__ import annotations

from dataclasses import dataclass

from tts_scheduler.config import SchedulerConfig

_SHORTEST_RETRY = 0.25
_LONG = 8.0
"""A turn of more than this many times the mean counts as that much."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """The utterance will be spoken."""


@dataclass(frozen=True, slots=True)
class Queued:
    """It waits for capacity, `predicted_wait` seconds or so; it may still time out."""

    predicted_wait: float


@dataclass(frozen=True, slots=True)
class Refused:
    """Not taken; try again in `retry_after` seconds. `reason` is for people."""

    retry_after: float
    reason: str


Admission = Admitted | Queued | Refused


class Turnover:
    """How long turns take, and so how soon one of several will be over."""

    def __init__(self, guess: float) -> None:
        self._mean = guess
        self._seen = 0

    def note(self, seconds: float) -> None:
        """An admitted turn took `seconds` until it was over.

        One that outlasted a pause of the machine, or was held for an hour, says little of others.
        """
        if self._seen:
            seconds = min(seconds, _LONG * max(self._mean, 1.0))
        self._seen += 1
        self._mean += (seconds - self._mean) / min(self._seen, 50)

    def wait(self, ahead: int, live: int) -> float:
        """Seconds until `ahead` + 1 of `live` turns are over, by the mean."""
        return (ahead + 1) * self._mean / max(live, 1)


def admit(
    live: int, queued: int, capacity: int, turnover: Turnover, config: SchedulerConfig
) -> Admission:
    """Decide about a new turn when `live` turns are admitted and `queued` wait before it."""
    if live < capacity and not queued:
        return Admitted()
    wait = turnover.wait(queued, live)
    retry_after = max(_SHORTEST_RETRY, wait)
    if queued >= config.queue_length:
        return Refused(retry_after, f"{live} turns of {capacity} are live and {queued} wait")
    if wait > config.queue_timeout:
        reason = f"{live} turns of {capacity} are live and none is expected to end in time"
        return Refused(retry_after, reason)
    return Queued(wait)
