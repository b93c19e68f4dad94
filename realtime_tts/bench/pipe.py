"""What the load generator and its client processes say to each other.

The messages are pickled. Both ends are this program: nothing that a stranger sent is read here.
"""

from __future__ import annotations

from dataclasses import dataclass

from realtime_tts.bench.meeting import Share
from realtime_tts.bench.observed import Observed
from realtime_tts.bench.settings import BenchSettings, Level


@dataclass(frozen=True, slots=True)
class Job:
    """To a client process: carry out your share of a pass."""

    level: Level
    settings: BenchSettings
    share: Share
    paced: bool


@dataclass(frozen=True, slots=True)
class Here:
    """From a client process: all of mine wait to go on."""


@dataclass(frozen=True, slots=True)
class GoOn:
    """To all client processes, when every one is `Here`: go on at this time of `clock`."""

    at: float


@dataclass(frozen=True, slots=True)
class Done:
    """From a client process: so many turns."""

    what: str
    turns: int


@dataclass(frozen=True, slots=True)
class Failed:
    """From a client process: the pass cannot go on."""

    message: str


Answer = Here | Done | Failed | Observed
