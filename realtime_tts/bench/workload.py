"""What is asked of a server: which texts, in which pieces, when, and where they are cut off.

Pure: a seed and a session's number give the same turns on every machine, however fast the server
is. Nothing waits here.

- *closed*: so many sessions, each speaks one turn after another.
- *burst*: the same, but all of them begin each turn together.
- *open*: turns begin at random times (Poisson); a slow answer never delays the next arrival.
- *agents*: so many conversations. Somebody thinks, a language model answers at a pace of its own
  and now and then stalls, and some answers are talked over at a random point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import exp, log
from random import Random

from realtime_tts.bench.deltas import DeltaTiming, schedule
from realtime_tts.bench.prompts import PromptPicker
from realtime_tts.bench.settings import BenchSettings, Mode

_CHARS_PER_SECOND = 14.0
"""Spoken English has roughly so many; it bounds where an agent's answer can be cut off."""
_OPEN_SECONDS = 30.0
_WARM_UP_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """One turn that is to be spoken.

    `deltas`: pairs of (seconds to wait, text delta). `cut_after`: seconds after the first packet at
    which the listener interrupts; None: never. `pause`: seconds between the end of the turn before,
    as heard, and this one.
    """

    deltas: tuple[tuple[float, str], ...]
    cut_after: float | None = None
    pause: float = 0.0

    @property
    def text(self) -> str:
        """What is spoken."""
        return "".join(delta for _, delta in self.deltas)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A turn of the open loop, `at` seconds after the run began; warm-up turns do not count."""

    at: float
    turn: TurnPlan
    counts: bool


def session_turns(settings: BenchSettings, mode: Mode, number: int) -> Iterator[TurnPlan]:
    """The turns of session `number`, without end."""
    random = Random(f"{settings.seed}:{number}")
    prompts = PromptPicker(random.getrandbits(32), settings.prompts)
    while True:
        text = prompts.next()
        if mode is Mode.AGENTS:
            yield _agent_turn(text, settings, random)
        else:
            pause = random.expovariate(1.0) * settings.pause
            yield replace(_turn(text, settings, random), pause=pause)


def arrivals(settings: BenchSettings, rate: float) -> Iterator[Arrival]:
    """Poisson arrivals at `rate` a second: so many as asked for, or for so many seconds.

    Before them comes a tenth as much that does not count, unless there is no warm-up.
    """
    times = Random(f"{settings.seed}:arrivals")
    random = Random(f"{settings.seed}:turns")
    prompts = PromptPicker(random.getrandbits(32), settings.prompts)
    warm_up = _WARM_UP_SHARE if settings.warm_up else 0.0
    count, at, number = settings.arrivals, 0.0, 0
    amount = (settings.seconds or _OPEN_SECONDS) if count is None else float(count)
    while True:
        at += times.expovariate(rate)
        done = at if count is None else float(number)
        if done >= amount + round(warm_up * amount):
            return
        turn = _turn(prompts.next(), settings, random)
        yield Arrival(at, turn, counts=done >= round(warm_up * amount))
        number += 1


def _turn(text: str, settings: BenchSettings, random: Random) -> TurnPlan:
    cut = random.random() < settings.interrupts
    cut_after = random.uniform(*settings.cut_between) if cut else None
    return TurnPlan(tuple(schedule(text, settings.timing, random)), cut_after)


def _agent_turn(text: str, settings: BenchSettings, random: Random) -> TurnPlan:
    """Make an agent's turn: thought about, written at its own speed, perhaps cut off anywhere."""
    agents = settings.agents
    pause = random.expovariate(1.0) * agents.think_seconds
    slow, fast = log(agents.slowest), log(agents.fastest)
    timing = replace(settings.timing, tokens_per_second=exp(random.uniform(slow, fast)))
    timing = _with_stalls(timing, settings)
    cut = random.random() < agents.interrupts
    cut_after = random.uniform(0.0, len(text) / _CHARS_PER_SECOND) if cut else None
    return TurnPlan(tuple(schedule(text, timing, random)), cut_after, pause)


def _with_stalls(timing: DeltaTiming, settings: BenchSettings) -> DeltaTiming:
    """Add stalls: what the command line says of them, or else the agents' own."""
    return timing if timing.stall_chance else replace(timing, stall_chance=settings.agents.stalls)
