"""Rows for which the engine had no memory: nothing is lost, nobody spins, nothing is mislearned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tts_scheduler import Phase, StepPlan, StepResult


@pytest.fixture
def starve(make_rig: Callable[..., Any]) -> tuple[Any, set[str]]:
    """A rig whose engine leaves out whoever is in the set."""
    rig, without = make_rig(slots=4), set()
    execute = rig.execute

    def partly(plan: StepPlan, seconds: float = 0.01) -> StepResult:
        named = {p.id for p in plan.prefills} | {d.id for d in plan.decodes}
        left_out = frozenset(named & without)
        short = {id: rig.pending.get(id, 0) for id in left_out}
        codec = tuple(
            replace(c, frames=min(c.frames, short.get(c.id, c.frames))) for c in plan.codec
        )
        done = StepPlan(
            tuple(p for p in plan.prefills if p.id not in left_out),
            tuple(d for d in plan.decodes if d.id not in left_out),
            tuple(c for c in codec if c.frames),
        )
        return replace(execute(done, seconds), left_out=left_out)

    rig.execute = partly
    return rig, without


def test_a_start_without_memory_waits_and_begins_later(starve: tuple[Any, set[str]]) -> None:
    rig, without = starve
    without.add("a")
    rig.open("a", 5, finish=True, frames=6)
    assert [p.id for p in rig.step().prefills] == ["a"]
    assert rig.scheduler.stats("a").phase is Phase.WAITING
    assert rig.plan() is None, "not at once again"
    assert rig.scheduler.next_wake(rig.now) == pytest.approx(rig.now + 0.02)
    without.clear()
    rig.steps(6)
    assert rig.ended == ["a"]


def test_a_speaking_row_without_memory_goes_on_where_it_was(starve: tuple[Any, set[str]]) -> None:
    rig, without = starve
    rig.open("a", 30, finish=True, frames=12)
    rig.open("b", 30, finish=True, frames=12)
    rig.steps(3)
    frames = rig.scheduler.stats("a").frames
    without.add("a")
    asked = 0
    while "b" not in rig.ended:
        (plan,) = rig.steps(1)
        asked += any(d.id == "a" for d in plan.decodes)
    assert rig.scheduler.stats("a").frames == frames == rig.frames["a"]
    assert asked >= 2
    without.clear()
    while "a" not in rig.ended:
        rig.steps(1)
    assert rig.frames["a"] == 12
    numbers = [d.frame for plan in rig.plans for d in plan.decodes if d.id == "a"]
    assert sorted(set(numbers)) == list(range(1, 12)), "frames in order, none skipped"


def test_when_all_are_left_out_the_loop_sleeps(starve: tuple[Any, set[str]]) -> None:
    rig, without = starve
    rig.open("a", 30, finish=True, frames=12)
    rig.steps(2)
    without.add("a")
    began = rig.now
    rig.steps(10)
    assert rig.now - began >= 9 * 0.02
    without.clear()
    while "a" not in rig.ended:
        rig.steps(1)


def test_steps_that_did_nothing_teach_nothing(starve: tuple[Any, set[str]]) -> None:
    rig, without = starve
    rig.open("a", 30, finish=True, frames=12)
    rig.steps(2)
    without.add("a")
    rig.step(seconds=1e-6)  # may still turn what there is
    learned = rig.scheduler.cost.costs
    for _ in range(20):
        rig.now += 0.02
        rig.step(seconds=1e-6)
    assert rig.scheduler.cost.costs == learned
