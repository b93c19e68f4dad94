"""Settings of a run of the load generator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Any

from realtime_tts.bench.deltas import DeltaTiming
from realtime_tts.bench.prompts import PROMPTS
from realtime_tts.client import SessionOptions
from realtime_tts.errors import ConfigError


class Mode(StrEnum):
    """The kind of a load.

    closed: a number of sessions, each of which speaks one turn after another. burst: as closed, but
    all sessions begin each of their turns together. open: turns that begin at random times
    (Poisson) at a given rate, whether or not earlier ones are done. agents: a number of
    conversations, with thinking, text at a random speed, and interrupts.
    """

    CLOSED = "closed"
    BURST = "burst"
    OPEN = "open"
    AGENTS = "agents"


@dataclass(frozen=True, slots=True)
class Level:
    """One load: `sessions` or conversations, or for the open loop `rate` in turns per second.

    `changes`: fields of `BenchSettings` that differ for this level only. `climbs`: it is part of a
    ramp, whose later levels are skipped once a level could not be sustained.
    """

    mode: Mode
    sessions: int = 0
    rate: float = 0.0
    changes: Mapping[str, Any] = field(default_factory=dict)
    climbs: bool = False

    def __post_init__(self) -> None:
        if self.mode is not Mode.OPEN and self.sessions < 1:
            raise ConfigError(f"{self.mode}: at least 1 session is needed, got {self.sessions}")
        if self.mode is Mode.OPEN and not 0 < self.rate < inf:
            raise ConfigError(f"an open loop needs a rate above 0 turns/s, got {self.rate:g}")

    @property
    def name(self) -> str:
        """The level's name in tables and pictures: its sessions, or its rate."""
        return f"{self.rate:g}/s" if self.mode is Mode.OPEN else str(self.sessions)

    @property
    def title(self) -> str:
        """The name together with the kind of load."""
        return self.name if self.mode is Mode.OPEN else f"{self.mode} {self.name}"


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """The conversations of the agents' load.

    `think_seconds`: mean time between the end of an answer and the next one. `slowest`, `fastest`:
    tokens per second; each answer has a pace of its own between them. `stalls`: chance of a stall
    at each delta. `interrupts`: share of answers that are interrupted.
    """

    think_seconds: float = 1.5
    slowest: float = 15.0
    fastest: float = 120.0
    stalls: float = 0.02
    interrupts: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.think_seconds < inf:
            raise ConfigError(f"think seconds are 0 or more, got {self.think_seconds:g}")
        if not 0 < self.slowest <= self.fastest:
            raise ConfigError(f"pace must rise from above 0, got {self.slowest} to {self.fastest}")
        for name, share in (("stalls", self.stalls), ("interrupts", self.interrupts)):
            if not 0 <= share <= 1:
                raise ConfigError(f"{name} is a share from 0 to 1, got {share:g}")


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """How each level is measured.

    `turns`: measured turns per session. `seconds`: length of the open loop, unless a number of
    `arrivals` is given; with sessions it replaces `turns`. `warm_up`: turns per session before
    anything counts. `spread`: seconds over which the sessions of a closed loop begin their first
    turn, one after the other; 0: all at once. `pause`: seconds between the end of a turn's playback
    and the next turn. `interrupts`: share of turns that the listener cuts off, between
    `cut_between` seconds after the first packet. `agents` replaces these three. `rtf_turns`: turns
    per session of the unpaced pass, which measures speed; 0 leaves it out. `seed` makes texts,
    timing and speech repeatable. `prompts`: the texts, spoken in a shuffled order.
    `client_processes`: number of the load generator's processes; None: by the load and the cores.
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
    cut_between: tuple[float, float] = (0.2, 2.0)
    spread: float = 0.0
    client_processes: int | None = None

    def __post_init__(self) -> None:
        if not any(prompt.strip() for prompt in self.prompts):
            raise ConfigError("there is nothing to speak: give at least one prompt with text")
        if self.turns < 1 or self.warm_up < 0 or self.rtf_turns < 0:
            raise ConfigError("turns must be at least 1, warm-up and RTF turns at least 0")
        if self.seconds is not None and not 0 < self.seconds < inf:
            raise ConfigError(f"seconds must be above 0, got {self.seconds:g}")
        if self.arrivals is not None and self.arrivals < 1:
            raise ConfigError(f"arrivals must be at least 1, got {self.arrivals}")
        if not (0 <= self.pause < inf and 0 <= self.spread < inf):
            raise ConfigError(f"pause and spread are 0 or more, got {self.pause}, {self.spread}")
        if not 0 <= self.interrupts <= 1:
            raise ConfigError(f"interrupts is a share from 0 to 1, got {self.interrupts:g}")
        low, high = self.cut_between
        if not 0 <= low <= high:
            raise ConfigError(
                f"a cut lies between two times that rise from 0, got {low:g},{high:g}"
            )
        if self.client_processes is not None and self.client_processes < 1:
            raise ConfigError(f"client processes must be at least 1, got {self.client_processes}")
