"""No listener runs dry if some order of service could have prevented it.

Three ways to say it: against every possible order, on small cases; against the plans that were
carried out, on large ones; and against the promise about starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from tts_scheduler import (
    CostModel,
    Load,
    Playback,
    Scheduler,
    SchedulerConfig,
    StepCosts,
    StepPlan,
    StepResult,
)
from tts_scheduler.machine import Machine
from tts_scheduler.policy import DEADLINE_ORDER, ROUND_ROBIN, Policy, due
from tts_scheduler.simulator import Simulation
from tts_scheduler.workload import FAST, SLOW, STEADY, Workload

FRAME, PACKET, RATE = 1920, 2048, 24_000
STEPS = 6
HORIZON = STEPS + 2  # a frame may be for a packet that is due two steps after it


@dataclass(frozen=True)
class Listener:
    """A row on air: seconds of lead, samples waiting for their packet, frames before the codec."""

    lead: float
    unsent: int
    pending: int


@cache
def some_order_exists(
    rows: tuple[tuple[float, int], ...], per_step: int, step: float, steps: int
) -> bool:
    """Brute force over all choices of `per_step` rows in each of `steps` steps.

    `rows`: (lead now, samples made and not sent). Whatever is made leaves at the end of its step.
    """
    if steps == 0:
        return True
    for chosen in combinations(range(len(rows)), min(per_step, len(rows))):
        after = []
        for i, (lead, made) in enumerate(rows):
            made += FRAME * (i in chosen)
            lead -= step
            full = made // PACKET
            if lead < -1e-9:
                break  # nothing left in time, whoever was chosen
            after.append((round(lead + full * PACKET / RATE, 9), made - full * PACKET))
        if len(after) == len(rows) and some_order_exists(tuple(after), per_step, step, steps - 1):
            return True
    return False


def serve(
    listeners: list[Listener],
    config: SchedulerConfig,
    step: float,
    steps: int,
    policy: Policy = DEADLINE_ORDER,
) -> int:
    """Let the scheduler serve these rows for so many steps; returns how many ran dry."""
    cost = CostModel(StepCosts(step, 0.0, 0.0, 0.0, 0.0, 0.0))
    for _ in range(100):
        cost.observe(Load(0, 0, 1, 1), step)
    scheduler = Scheduler(config, cost, policy)
    for i in range(len(listeners)):
        scheduler.open(str(i), prompt_tokens=1, now=0.0)
        scheduler.append(str(i), 100, 0.0)
        scheduler.finish(str(i), 0.0)
    plan = scheduler.plan(0.0)
    assert plan is not None
    scheduler.commit(plan, StepResult(step, frozenset(plan.ids), {}), 0.0)
    for i, listener in enumerate(listeners):
        row = scheduler._requests.speaking[str(i)]
        row.playback = Playback()
        row.playback.sent(round(listener.lead * RATE), 0.0)
        row.playback.unsent_samples = listener.unsent
        row.codec_pending, row.codec_runs = listener.pending, 9
    now = 0.0
    for _ in range(steps):
        plan = scheduler.plan(now)
        now += step
        if plan is not None:
            samples = {run.id: run.frames * FRAME for run in plan.codec}
            frames = frozenset(d.id for d in plan.decodes)
            scheduler.commit(plan, StepResult(step, frames, samples), now)
    mirrors = [row.playback for row in scheduler._requests.speaking.values()]
    return sum(
        playback.late_seconds > 1e-9 or (playback.runs_out_at or 0.0) < now - 1e-9
        for playback in mirrors
    )


listeners = st.builds(
    Listener,
    lead=st.integers(1, 24).map(lambda n: n / 100),
    unsent=st.integers(0, PACKET - 1),
    pending=st.integers(0, 2),
)


@examples(300)
@given(
    st.lists(listeners, min_size=2, max_size=4),
    st.integers(1, 2),
    st.sampled_from([0.015, 0.025, 0.035, 0.04, 0.06]),
    st.sampled_from([(1,), (1, 1, 2, 4)]),
)
def test_if_any_order_of_service_keeps_every_deadline_ours_does(
    rows: list[Listener], per_step: int, step: float, chunks: tuple[int, ...]
) -> None:
    """For steps of equal length, shorter than a packet, and rows that have started."""
    state = tuple((row.lead, row.unsent + row.pending * FRAME) for row in rows)
    if not some_order_exists(state, per_step, step, HORIZON):
        return
    config = SchedulerConfig(
        slots=len(rows),
        max_rows=per_step,
        max_prefills=len(rows),
        start_seconds=60.0,
        codec_chunks=chunks,
        utilisation=1e6,
    )
    assert serve(rows, config, step, STEPS) == 0


def test_round_robin_breaks_what_deadline_order_keeps() -> None:
    """The property above is not empty: a case that another order loses."""
    rows = [Listener(0.20, 1000, 0), Listener(0.20, 1000, 0), Listener(0.03, 1000, 0)]
    state = tuple((row.lead, row.unsent) for row in rows)
    config = SchedulerConfig(
        slots=3, max_rows=1, max_prefills=3, start_seconds=60.0, utilisation=1e6
    )
    assert some_order_exists(state, 1, 0.025, HORIZON)
    assert serve(rows, config, 0.025, STEPS) == 0
    assert serve(rows, config, 0.025, STEPS, ROUND_ROBIN) > 0


# Against the plans that were carried out --------------------------------------------------------


@dataclass
class Witness:
    """One step as it was planned: who could run, when each was due, who ran."""

    now: float
    end: float
    dues: dict[str, float]
    fresh: set[str]
    plan: StepPlan


def witnessed(simulation: Simulation) -> tuple[list[Witness], dict[str, list[tuple[float, float]]]]:
    """Run it; returns all steps, and by utterance the (deadline, when it had text) of misses."""
    scheduler, config = simulation.scheduler, simulation.config
    steps: list[Witness] = []
    misses: dict[str, list[tuple[float, float]]] = {}
    plan_of, deliver = scheduler.plan, scheduler._deliver

    def plan(now: float) -> StepPlan | None:
        planned = plan_of(now)
        if planned is not None:
            rows = [row for row in scheduler._requests.speaking.values() if row.can_go_on]
            number = min(len(rows), config.rows_per_step)
            usual = scheduler.cost.predict(Load(0, 0, number, number)) * scheduler.cost.caution
            dues = {row.id: due(row, usual) for row in rows}
            fresh = {row.id for row in rows if not row.playback.on_air}
            length = scheduler.cost.predict(Load.of(planned)) * scheduler.cost.caution
            steps.append(Witness(now, now + length, dues, fresh, planned))
        return planned

    def note(id: str, samples: int, last: bool, seconds: float, now: float) -> None:
        row = scheduler._requests.speaking.get(id)
        if row is not None:
            deadline = row.playback.runs_out_at or inf
            before = (row.playback.underruns, row.starved_underruns)
            deliver(id, samples, last, seconds, now)
            if row.playback.underruns > before[0] and row.starved_underruns == before[1]:
                misses.setdefault(id, []).append((deadline, row.resumed_at or -inf))

    scheduler.plan = plan  # type: ignore[method-assign]
    scheduler._deliver = note  # type: ignore[method-assign]
    simulation.run()
    return steps, misses


@pytest.mark.parametrize("feeds", [(FAST, STEADY), (FAST, SLOW)], ids=["quick", "slow"])
def test_whoever_runs_dry_was_passed_over_only_for_rows_at_least_as_urgent(
    feeds: tuple[object, ...],
) -> None:
    """Too many sessions, on a machine that stumbles: some must run dry."""
    costs = StepCosts(0.012, 0.001, 0.0005, 0.004, 0.002, 0.0)
    machine = Machine(costs, hiccup_chance=0.03, hiccup_seconds=0.3)
    config = SchedulerConfig(slots=64, max_rows=8, utilisation=9.0)
    workload = Workload(60, turns=2, reporting=0.0, feeds=feeds)  # type: ignore[arg-type]
    steps, misses = witnessed(Simulation(workload, machine, config, seed=3))
    assert sum(map(len, misses.values())) > 20, "no overload, nothing to see"
    for id, found in misses.items():
        for deadline, text_at in found:
            since = max(text_at, deadline - config.reserve)
            for step in steps:
                if since <= step.now < deadline and id in step.dues.keys() - step.fresh:
                    served = {d.id for d in step.plan.decodes}
                    if id not in served:
                        others = {s: step.dues[s] for s in served - step.fresh}
                        assert all(d <= step.dues[id] + 1e-9 for d in others.values())
                        assert len(served) == config.max_rows, "passed over with room to spare"


def test_no_start_enters_a_step_that_somebody_on_air_cannot_afford() -> None:
    machine = Machine(StepCosts(0.012, 0.006, 0.002, 0.020, 0.020, 0.0002))
    config = SchedulerConfig(slots=8, utilisation=0.9)
    steps, _ = witnessed(Simulation(Workload(10, turns=8, reporting=0.0), machine, config, seed=5))
    starts = 0
    for step in steps:
        if step.plan.prefills:
            starts += 1
            alone = min(machine.costs.base, step.end - step.now)
            for id, latest in step.dues.items():
                if id not in step.fresh and latest >= step.now + alone + 0.05:
                    assert step.end <= latest + 1e-9, f"{id} pays for {step.plan.prefills}"
    assert starts > 40
