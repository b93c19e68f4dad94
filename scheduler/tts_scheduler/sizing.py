"""How many sessions a machine can serve: the simulation repeated over a range of sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tts_scheduler.config import SchedulerConfig
from tts_scheduler.machine import Machine
from tts_scheduler.policy import DEADLINE_ORDER, Policy
from tts_scheduler.report import Summary
from tts_scheduler.simulator import Outcome, Simulation
from tts_scheduler.workload import Workload


@dataclass(frozen=True, slots=True)
class Limits:
    """What counts as "fits": TTFA in seconds, the others as shares of turns."""

    ttfa_p95: float = 0.3
    kept_turns: float = 0.99
    refusals: float = 0.01


@dataclass(frozen=True, slots=True)
class Point:
    """The result of one run with `sessions` sessions."""

    policy: str
    sessions: int
    summary: Summary
    outcome: Outcome

    def fits(self, limits: Limits) -> bool:
        """Return whether all limits are met."""
        ttfa = self.summary.ttfa
        return (
            ttfa is not None
            and ttfa.p95 <= limits.ttfa_p95
            and self.summary.kept_turns >= limits.kept_turns
            and self.outcome.refusals <= limits.refusals
        )


def run_point(
    workload: Workload,
    machine: Machine,
    config: SchedulerConfig,
    seed: int = 0,
    policy: Policy = DEADLINE_ORDER,
) -> Point:
    """Simulate one number of sessions."""
    outcome = Simulation(workload, machine, config, seed=seed, policy=policy).run()
    return Point(policy.name, workload.sessions, outcome.summary(), outcome)


def curve(
    sessions: Iterable[int],
    workload: Workload,
    machine: Machine,
    config: SchedulerConfig,
    seed: int = 0,
    policy: Policy = DEADLINE_ORDER,
) -> Iterator[Point]:
    """Yield one point per number of sessions, as soon as each is known."""
    for number in sessions:
        yield run_point(replace(workload, sessions=number), machine, config, seed, policy)


def largest_fit(points: Sequence[Point], limits: Limits) -> int:
    """Return the most sessions up to which every point fits; 0 if not even the fewest do."""
    most = 0
    for point in sorted(points, key=lambda point: point.sessions):
        if not point.fits(limits):
            break
        most = point.sessions
    return most
