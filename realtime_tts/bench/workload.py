"""What is asked of a server: which texts, in which pieces, when, and where they are cut off; and
the interface of a target.

Pure: a seed and a session's number give the same turns on every machine, however fast the server
is. Nothing waits here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from math import exp, log
from random import Random
from typing import Any, Protocol

from realtime_tts.bench.deltas import schedule
from realtime_tts.bench.observation import Observation
from realtime_tts.bench.settings import BenchSettings, Mode

_CHARS_PER_SECOND = 14.0
"""Characters per second of spoken English, to bound where an agent's answer is cut off."""
_OPEN_SECONDS = 30.0
_WARM_UP_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """One turn to be spoken.

    `deltas`: pairs of (seconds to wait, text delta). `cut_after`: seconds after the first packet at
    which the listener interrupts; None: never. `pause`: seconds between the end of the turn before,
    as heard, and this one.
    """

    deltas: tuple[tuple[float, str], ...]
    cut_after: float | None = None
    pause: float = 0.0

    @property
    def text(self) -> str:
        """The whole text of the turn."""
        return "".join(delta for _, delta in self.deltas)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A turn of the open loop, `at` seconds after the run began; warm-up turns do not count."""

    at: float
    turn: TurnPlan
    counts: bool


def session_turns(settings: BenchSettings, mode: Mode, number: int) -> Iterator[TurnPlan]:
    """Yield the turns of session `number`, without end."""
    random = Random(f"{settings.seed}:{number}")
    prompts = shuffled(settings.prompts, Random(random.getrandbits(32)))
    while True:
        text = next(prompts)
        if mode is Mode.AGENTS:
            yield _agent_turn(text, settings, random)
        else:
            pause = random.expovariate(1.0) * settings.pause
            yield replace(_turn(text, settings, random), pause=pause)


def arrivals(settings: BenchSettings, rate: float) -> Iterator[Arrival]:
    """Yield Poisson arrivals at `rate` per second: the settings' number of them, or for their
    seconds.

    A tenth as many come before, as a warm-up that does not count, unless there is no warm-up.
    """
    times = Random(f"{settings.seed}:arrivals")
    random = Random(f"{settings.seed}:turns")
    prompts = shuffled(settings.prompts, Random(random.getrandbits(32)))
    warm_up = _WARM_UP_SHARE if settings.warm_up else 0.0
    count, at, number = settings.arrivals, 0.0, 0
    amount = (settings.seconds or _OPEN_SECONDS) if count is None else float(count)
    while True:
        at += times.expovariate(rate)
        done = at if count is None else float(number)
        if done >= amount + round(warm_up * amount):
            return
        turn = _turn(next(prompts), settings, random)
        yield Arrival(at, turn, counts=done >= round(warm_up * amount))
        number += 1


def shuffled(prompts: Sequence[str], random: Random) -> Iterator[str]:
    """Yield the prompts in a random order, again and again.

    Each comes once per round, so two runs with the same number of turns ask for nearly the same
    amount of speech.
    """
    while True:
        order = list(prompts)
        random.shuffle(order)
        yield from reversed(order)


def _turn(text: str, settings: BenchSettings, random: Random) -> TurnPlan:
    cut = random.random() < settings.interrupts
    cut_after = random.uniform(*settings.cut_between) if cut else None
    return TurnPlan(tuple(schedule(text, settings.timing, random)), cut_after)


def _agent_turn(text: str, settings: BenchSettings, random: Random) -> TurnPlan:
    """Return an agent's turn: after thinking, written at its own speed, perhaps cut off."""
    agents = settings.agents
    pause = random.expovariate(1.0) * agents.think_seconds
    slow, fast = log(agents.slowest), log(agents.fastest)
    timing = replace(settings.timing, tokens_per_second=exp(random.uniform(slow, fast)))
    if not timing.stall_chance:  # none was set on the command line
        timing = replace(timing, stall_chance=agents.stalls)
    cut = random.random() < agents.interrupts
    cut_after = random.uniform(0.0, len(text) / _CHARS_PER_SECOND) if cut else None
    return TurnPlan(tuple(schedule(text, timing, random)), cut_after, pause)


Progress = Callable[[str, int, int | None], None]
"""Called with (what, done, total) as a pass goes on; total is None where time ends it."""


class Counter:
    """Counts measured turns for the progress display."""

    def __init__(self, what: str, progress: Progress, total: int | None) -> None:
        self._what, self._progress, self._total = what, progress, total
        self._done = 0
        progress(what, 0, total)

    def one(self) -> None:
        self._done += 1
        self._progress(self._what, self._done, self._total)


Speak = Callable[[TurnPlan], Awaitable[Observation]]
"""One listener's session: sends a turn's deltas in their time, and returns what was observed.
Errors of the server are not raised: they are part of the observation."""


class Target(Protocol):
    """Something that can be given a load. All of it lives on one event loop."""

    @property
    def local(self) -> bool:
        """Whether it runs on this machine."""

    async def describe(self) -> dict[str, Any]:
        """Return `url`, `server`, `model`, `random_weights`, `voice` and `lead_ms`.

        Raises what `session` raises.
        """

    def session(self, *, paced: bool = True) -> AbstractAsyncContextManager[Speak]:
        """Open a session; unpaced, speech may run as far ahead of the listener as is allowed.

        Entering raises HandshakeRefused, OverloadedError or RequestError if it cannot be opened.
        """

    async def metrics(self) -> str:
        """Return the target's metrics in Prometheus' text format; empty if it has none."""
