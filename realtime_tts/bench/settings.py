"""What a run of the load generator does."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from realtime_tts.bench.deltas import DeltaTiming
from realtime_tts.bench.prompts import PROMPTS
from realtime_tts.client import SessionOptions
from realtime_tts.errors import ConfigError


class Mode(StrEnum):
    """closed: so many sessions, each speaks one turn after another. open: turns begin at random
    times (Poisson) at a given rate, whether or not earlier ones are done."""

    CLOSED = "closed"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Level:
    """One load: `sessions` for the closed loop, `rate` in turns per second for the open one."""

    mode: Mode
    sessions: int = 0
    rate: float = 0.0

    def __post_init__(self) -> None:
        if self.mode is Mode.CLOSED and self.sessions < 1:
            raise ConfigError(f"a closed loop needs at least 1 session, got {self.sessions}")
        if self.mode is Mode.OPEN and self.rate <= 0:
            raise ConfigError(f"an open loop needs a rate above 0 turns/s, got {self.rate:g}")

    @property
    def name(self) -> str:
        """For tables and pictures."""
        if self.mode is Mode.CLOSED:
            return str(self.sessions)
        return f"{self.rate:g}/s"


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """How each level is measured.

    `turns`: measured turns per session in the closed loop. `seconds`: length of the open loop; in
    the closed loop, if given, it takes the place of `turns`. `warm_up`: turns per session before
    anything counts. `pause`: seconds between the end of a turn's playback and the next turn.
    `interrupts`: share of turns that the listener cuts off. `rtf_turns`: turns per session of the
    unpaced pass, which measures speed; 0 leaves it out. `seed` repeats texts, timing and speech.
    `prompts`: what is spoken, in a shuffled order.
    """

    server: str
    api_key: str | None = field(default=None, repr=False)
    options: SessionOptions = field(default_factory=SessionOptions)
    timing: DeltaTiming = DeltaTiming()
    turns: int = 5
    seconds: float | None = None
    warm_up: int = 1
    pause: float = 0.3
    interrupts: float = 0.0
    rtf_turns: int = 2
    seed: int = 0
    prompts: tuple[str, ...] = field(default=PROMPTS, repr=False)

    def __post_init__(self) -> None:
        if not any(prompt.strip() for prompt in self.prompts):
            raise ConfigError("there is nothing to speak: give at least one prompt with text")
        if self.turns < 1 or self.warm_up < 0 or self.rtf_turns < 0:
            raise ConfigError("turns must be at least 1, warm-up and RTF turns at least 0")
        if self.seconds is not None and self.seconds <= 0:
            raise ConfigError(f"seconds must be above 0, got {self.seconds:g}")
        if self.pause < 0:
            raise ConfigError(f"pause must not be negative, got {self.pause:g}")
        if not 0 <= self.interrupts <= 1:
            raise ConfigError(f"interrupts is a share from 0 to 1, got {self.interrupts:g}")
