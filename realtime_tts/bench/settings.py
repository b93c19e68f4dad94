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
    times (Poisson) at a given rate, whether or not earlier ones are done. agents: so many
    conversations, with thinking, text at a random pace, and interrupts."""

    CLOSED = "closed"
    OPEN = "open"
    AGENTS = "agents"


@dataclass(frozen=True, slots=True)
class Level:
    """One load: `sessions` or conversations, or for the open loop `rate` in turns per second."""

    mode: Mode
    sessions: int = 0
    rate: float = 0.0

    def __post_init__(self) -> None:
        if self.mode is not Mode.OPEN and self.sessions < 1:
            raise ConfigError(f"{self.mode}: at least 1 session is needed, got {self.sessions}")
        if self.mode is Mode.OPEN and self.rate <= 0:
            raise ConfigError(f"an open loop needs a rate above 0 turns/s, got {self.rate:g}")

    @property
    def name(self) -> str:
        """For tables and pictures."""
        return f"{self.rate:g}/s" if self.mode is Mode.OPEN else str(self.sessions)


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """The conversations of the agents' load.

    `think_seconds`: mean time between the end of an answer and the next one. `slowest`, `fastest`:
    tokens per second; each answer has a pace of its own between them. `stalls`: chance of a stall
    at each delta. `interrupts`: share of answers that are talked over.
    """

    think_seconds: float = 1.5
    slowest: float = 15.0
    fastest: float = 120.0
    stalls: float = 0.02
    interrupts: float = 0.2

    def __post_init__(self) -> None:
        if self.think_seconds < 0:
            raise ConfigError(f"think seconds must not be negative, got {self.think_seconds:g}")
        if not 0 < self.slowest <= self.fastest:
            raise ConfigError(f"pace must rise from above 0, got {self.slowest} to {self.fastest}")
        for name, share in (("stalls", self.stalls), ("interrupts", self.interrupts)):
            if not 0 <= share <= 1:
                raise ConfigError(f"{name} is a share from 0 to 1, got {share:g}")


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """How each level is measured.

    `turns`: measured turns per session. `seconds`: length of the open loop, if it has no number of
    `arrivals`; with sessions, if given, it takes the place of `turns`. `warm_up`: turns per session
    before anything counts. `pause`: seconds between the end of a turn's playback and the next turn.
    `interrupts`: share of turns that the listener cuts off. `agents` takes the place of these two.
    `rtf_turns`: turns per session of the unpaced pass, which measures speed; 0 leaves it out.
    `seed` repeats texts, timing and speech. `prompts`: what is spoken, in a shuffled order.
    """

    server: str
    api_key: str | None = field(default=None, repr=False)
    tls_ca: str | None = None
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
    arrivals: int | None = None
    agents: AgentSettings = AgentSettings()

    def __post_init__(self) -> None:
        if not any(prompt.strip() for prompt in self.prompts):
            raise ConfigError("there is nothing to speak: give at least one prompt with text")
        if self.turns < 1 or self.warm_up < 0 or self.rtf_turns < 0:
            raise ConfigError("turns must be at least 1, warm-up and RTF turns at least 0")
        if self.seconds is not None and self.seconds <= 0:
            raise ConfigError(f"seconds must be above 0, got {self.seconds:g}")
        if self.arrivals is not None and self.arrivals < 1:
            raise ConfigError(f"arrivals must be at least 1, got {self.arrivals}")
        if self.pause < 0:
            raise ConfigError(f"pause must not be negative, got {self.pause:g}")
        if not 0 <= self.interrupts <= 1:
            raise ConfigError(f"interrupts is a share from 0 to 1, got {self.interrupts:g}")
