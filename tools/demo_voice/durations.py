"""Which turns ended too early, and which would not end: by the teacher's time for the same text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

SHORTEST, LONGEST = 0.6, 1.6
"""Shares of the teacher's duration."""
_SLACK_SECONDS = 0.5
_SHORTEST_OF_SHORT = 0.3  # the slack must not excuse a "No." that was never said

Fault = Literal["guard", "early", "runaway"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One text spoken. `reason`: how the server ended it; seconds of student and teacher."""

    text: str
    voice: str
    layout: str
    seconds: float
    teacher_seconds: float
    reason: str = "complete"

    @property
    def ratio(self) -> float:
        return self.seconds / self.teacher_seconds

    @property
    def fault(self) -> Fault | None:
        """guard: ended by a guard or the frame limit; early, runaway: by itself, but too short
        (below 0.6 of the teacher's duration less half a second, or 0.3 of it), too long (above
        1.6 of it and half a second)."""
        if self.reason != "complete":
            return "guard"
        shortest = max(
            SHORTEST * self.teacher_seconds - _SLACK_SECONDS,
            _SHORTEST_OF_SHORT * self.teacher_seconds,
        )
        if self.seconds < shortest:
            return "early"
        return "runaway" if self.seconds > LONGEST * self.teacher_seconds + _SLACK_SECONDS else None


@dataclass(frozen=True, slots=True)
class Endings:
    """How many turns there were, and how many with each fault; `ratio`: mean of the turns'."""

    turns: int
    guard: int
    early: int
    runaway: int
    ratio: float

    @classmethod
    def of(cls, turns: Iterable[Turn]) -> Endings:
        turns = list(turns)
        faults = [turn.fault for turn in turns]
        ratio = sum(turn.ratio for turn in turns) / len(turns) if turns else 0.0
        return cls(
            turns=len(turns),
            guard=faults.count("guard"),
            early=faults.count("early"),
            runaway=faults.count("runaway"),
            ratio=ratio,
        )
