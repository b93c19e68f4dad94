from __future__ import annotations

from dataclasses import replace

import pytest

from tts_scheduler import CostModel, SchedulerConfig, StepCosts, StepPlan
from tts_scheduler.machine import Machine
from tts_scheduler.playback import FRAME_SECONDS
from tts_scheduler.policy import ARRIVAL_ORDER, DEADLINE_ORDER, POLICIES, ROUND_ROBIN
from tts_scheduler.report import measure
from tts_scheduler.simulator import Outcome, Simulation
from tts_scheduler.sizing import Limits, curve, largest_fit, run_point
from tts_scheduler.workload import BURSTY, COMPLETE, FAST, STEADY, Workload

GPU = Machine(StepCosts(0.0067, 0.00004, 0.00003, 0.0018, 0.0001, 0.000004))
MIDDLE = Machine(StepCosts(0.012, 0.00015, 0.0001, 0.004, 0.0005, 0.00001))
CPU = Machine(StepCosts(0.012, 0.006, 0.002, 0.02, 0.02, 0.0002))
QUICK = (FAST, STEADY, BURSTY, COMPLETE)


def run(sessions: int, machine: Machine, config: SchedulerConfig, **more: object) -> Outcome:
    return Simulation(Workload(sessions), machine, config, seed=1, **more).run()  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_run() -> None:
    config = SchedulerConfig(slots=8)
    first, second = (run(10, CPU, config) for _ in range(2))
    assert first.summary() == second.summary()
    assert [trace.packets for trace in first.traces] == [trace.packets for trace in second.traces]
    other = Simulation(Workload(10), CPU, config, seed=2).run()
    assert other.summary() != first.summary()


def test_every_turn_asked_for_ends_in_one_way() -> None:
    outcome = run(30, CPU, SchedulerConfig(slots=8))
    reasons = {trace.reason for trace in outcome.traces}
    assert reasons == {"complete", "interrupted", "expired"}
    expired = sum(trace.reason == "expired" for trace in outcome.traces)
    never_taken = outcome.refused - expired
    assert len(outcome.traces) + never_taken == outcome.asked == 30 * 3


def test_the_scheduler_s_mirror_sees_what_the_listener_hears() -> None:
    """Underruns counted by the scheduler equal those replayed from the packets."""
    seen: dict[str, tuple[int, float]] = {}
    simulation = Simulation(
        Workload(12, reporting=0.0), CPU, SchedulerConfig(slots=8), seed=4, policy=ROUND_ROBIN
    )
    over = simulation._over

    def note(turn: object, reason: str) -> None:
        stats = simulation.scheduler.stats(turn.id)  # type: ignore[attr-defined]
        seen[turn.id] = (stats.underruns, round(stats.late_seconds, 9))  # type: ignore[attr-defined]
        report = measure(turn.trace)  # type: ignore[attr-defined]
        assert seen[turn.id] == (report.underruns, round(report.late_seconds, 9))  # type: ignore[attr-defined]
        over(turn, reason)  # type: ignore[arg-type]

    simulation._over = note  # type: ignore[method-assign]
    simulation.run()
    assert sum(underruns for underruns, _ in seen.values()) > 5


@pytest.mark.slow
def test_a_thousand_sessions_on_one_machine() -> None:
    """1,000 sessions come and go; the machine has slots for 256 of them at a time."""
    most = 0

    def watch(simulation: Simulation, plan: StepPlan) -> None:
        nonlocal most
        most = max(most, len(simulation.turns))
        slots = list(plan.slots.values())
        assert len(set(slots)) == len(slots)
        assert simulation.scheduler.active <= simulation.config.slots

    workload = Workload(1000, turns=1, arrival_seconds=50.0)
    config = SchedulerConfig(slots=256)
    simulation = Simulation(workload, GPU, config, seed=7, watch=watch)
    outcome = simulation.run()
    summary = outcome.summary()
    assert len(outcome.traces) == 1000
    assert most > 100
    assert outcome.refused == 0
    assert summary.kept_turns > 0.999
    assert summary.ttfa is not None
    assert summary.ttfa.p50 < 0.03
    assert summary.ttfa.p95 < 0.2  # slow models: the start policy waits 0.15 s for a second token


def test_a_burst_is_refused_quickly_and_those_on_air_do_not_notice() -> None:
    workload = Workload(600, turns=1, arrival_seconds=1.0, feeds=QUICK, reporting=0.0)
    outcome = Simulation(
        workload, MIDDLE, SchedulerConfig(slots=256, utilisation=0.7), seed=2
    ).run()
    assert outcome.refusals > 0.3
    assert outcome.peak <= 180  # 12 ms and 0.25 ms per row: 176 rows fit 56 ms
    assert outcome.summary().kept_turns > 0.99


def test_a_cold_start_learns_the_machine_by_itself() -> None:
    cold = Simulation(Workload(40), CPU, SchedulerConfig(slots=32), seed=1, cost=CostModel()).run()
    assert 4 <= cold.capacity <= 6
    assert cold.summary().kept_turns > 0.9


@pytest.mark.parametrize(
    ("machine", "slots", "turns"),
    [
        pytest.param(MIDDLE, 384, 1, id="gpu", marks=pytest.mark.slow),
        pytest.param(CPU, 8, 2, id="cpu"),
    ],
)
@pytest.mark.parametrize("limited", [False, True], ids=["all rows", "some rows"])
@pytest.mark.parametrize("load", [1.0, 1.4])
def test_deadline_order_is_never_worse_than_the_others(
    machine: Machine, slots: int, turns: int, limited: bool, load: float
) -> None:
    """Admission off, as many turns at a time as the machine can just speak, and more than that."""
    max_rows = max(2, slots // 6) if limited else None
    config = SchedulerConfig(slots=slots, max_rows=max_rows, utilisation=1e6, max_queue=50)
    rows = machine.lesson().capacity(FRAME_SECONDS, slots, max_rows)
    sessions = round(load * rows)
    workload = Workload(sessions, turns=turns, feeds=QUICK, reporting=0.0, barge_in=0.0)
    points = {
        policy: run_point(workload, machine, config, 3, policy).summary for policy in POLICIES
    }
    ours = points[DEADLINE_ORDER]
    for other in (ROUND_ROBIN, ARRIVAL_ORDER):
        assert ours.kept_turns >= points[other].kept_turns
        assert ours.late_seconds <= points[other].late_seconds


def test_a_curve_falls_where_the_machine_is_full() -> None:
    config = SchedulerConfig(slots=8)
    points = list(curve([2, 4, 16], Workload(0, feeds=QUICK), CPU, config, seed=1))
    assert [point.sessions for point in points] == [2, 4, 16]
    assert largest_fit(points, Limits()) == 4
    assert points[-1].outcome.refusals > 0.1
    assert points[0].outcome.capacity >= 4 and points[0].outcome.peak <= 2


def test_fitting_ends_at_the_first_failure() -> None:
    config = SchedulerConfig(slots=8)
    good, bad = curve([2, 16], Workload(0, feeds=QUICK), CPU, config, seed=1)
    assert good.fits(Limits()) and not bad.fits(Limits())
    assert largest_fit([bad, good], Limits()) == 2
    assert largest_fit([bad], Limits()) == 0
    lucky = replace(good, sessions=20)
    assert largest_fit([lucky, bad, good], Limits()) == 2
