"""Thousands of turns on simulated machines that have too little memory for all of them.

A stand-in for the engine follows every plan with block tables of its own, and checks what a plan
promises.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import cast

import pytest

from tts_scheduler import CostModel, KVCacheSize, SchedulerConfig, StepCosts, StepPlan
from tts_scheduler.machine import Machine
from tts_scheduler.simulator import Outcome, Simulation
from tts_scheduler.workload import FEEDS, SLOW, STALLING, TextFeed, Workload

MAX_FRAMES = 400
COSTS = StepCosts(0.010, 0.0004, 0.0002, 0.002, 0.001, 0.0)
UNLIMITED = 1e6


class Engine:
    """A machine that keeps block tables as plans say, by id."""

    simulation: Simulation

    def __init__(self, memory: KVCacheSize) -> None:
        self.memory = self.kv_cache = memory
        self.machine = Machine(COSTS)
        self.pages: dict[str, list[int]] = {}
        self.away: dict[str, int] = {}
        """Pages that rows in host memory had."""
        self.prompts: dict[str, int] = {}
        self.swaps: Counter[str] = Counter()

    def seconds(self, plan: StepPlan, random: Random) -> float:
        """The machine's part: the plan is about to be carried out."""
        alive = self.simulation.turns.keys()
        for kept in (self.pages, self.away):
            for id in kept.keys() - alive:
                del kept[id]
        owned = [page for pages in self.pages.values() for page in pages]
        kv = self.simulation.scheduler._requests.kv
        assert kv is not None
        assert sorted([*owned, *kv.free]) == list(range(1, self.memory.pages + 1))
        self.follow(plan)
        return self.machine.seconds(plan, random)

    def check_ahead(self) -> None:
        """After a start, everyone in memory can speak for two seconds without anybody's pages;
        unless all the others wait for text, and will give way themselves."""
        if not any(row.can_go_on for row in self.simulation.scheduler._requests.speaking.values()):
            return
        ahead = sum(
            -(-(self.prompts[id] + self.simulation.turns[id].frames + 25) // 16)
            for id in self.pages
        )
        assert ahead <= self.memory.pages

    def lesson(self) -> CostModel:
        """As `Machine.lesson`."""
        return self.machine.lesson()

    def follow(self, plan: StepPlan) -> None:
        for out in plan.swap_outs:
            self.away[out.id] = len(self.pages.pop(out.id))
            self.swaps["out"] += 1
        for back in plan.swap_ins:
            self.swaps["in"] += 1
            assert back.id in self.away
        returning = {back.id for back in plan.swap_ins}
        for each in plan.reservations:
            table = self.pages.setdefault(each.id, [])
            assert each.first == len(table) and each.pages
            assert (each.id in self.away) == (each.id in returning)
            table += each.pages
            assert len(table) >= self.away.pop(each.id, 0), "came back with less than it had"
        owned = [page for pages in self.pages.values() for page in pages]
        assert len(owned) == len(set(owned)) <= self.memory.pages
        self.prompts.update((prefill.id, prefill.positions) for prefill in plan.prefills)
        if plan.prefills and not plan.swap_outs:
            self.check_ahead()
        making = [(p.id, 0) for p in plan.prefills] + [(d.id, d.frame) for d in plan.decodes]
        for id, frame in making:
            assert id not in self.away
            assert self.prompts[id] + frame <= len(self.pages[id]) * self.memory.page_size


def run(
    pages: int,
    sessions: int,
    seed: int,
    feeds: tuple[TextFeed, ...] = FEEDS,
    turns: int = 3,
    barge_in: float = 0.15,
    tokens: tuple[int, int] = (8, 60),
    **settings: object,
) -> tuple[Outcome, Engine]:
    memory = KVCacheSize(pages, 16, pages * 16, MAX_FRAMES)
    engine = Engine(memory)
    config = SchedulerConfig(slots=64, **settings)  # type: ignore[arg-type]
    workload = Workload(sessions, turns=turns, feeds=feeds, barge_in=barge_in, tokens=tokens)
    engine.simulation = Simulation(workload, cast(Machine, engine), config, seed=seed)
    return engine.simulation.run(), engine


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_rows_are_preempted_and_every_turn_is_spoken_to_its_end(seed: int) -> None:
    """Everybody is let in, into memory for a fraction of them."""
    outcome, engine = run(
        60, 25, seed, tokens=(40, 80), kv_utilisation=UNLIMITED, utilisation=UNLIMITED
    )
    assert outcome.swap_outs == engine.swaps["out"] > 10 and engine.swaps["in"] > 10
    assert outcome.peak_pages > 50
    reasons = Counter(trace.reason for trace in outcome.traces)
    assert reasons["complete"] + reasons["interrupted"] == len(outcome.traces) == 75
    assert not outcome.refused


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_with_admission_hardly_anybody_is_preempted_and_nobody_hears_a_gap(seed: int) -> None:
    outcome, engine = run(240, 40, seed)
    assert outcome.refused, "nothing was short"
    assert engine.swaps["out"] <= 2
    assert outcome.summary().kept_turns == 1.0


def test_memory_that_is_enough_changes_nothing() -> None:
    plenty, engine = run(64 * 40, 30, seed=5)
    assert not engine.swaps
    config = SchedulerConfig(slots=64)
    without = Simulation(Workload(30, turns=3), Machine(COSTS), config, seed=5).run()
    assert [trace.packets for trace in plenty.traces] == [t.packets for t in without.traces]


def test_rows_that_wait_for_text_are_preempted_and_all_come_back() -> None:
    """Slow writers: rows wait for text most of the time."""
    outcome, engine = run(
        40, 25, 2, (SLOW, STALLING), 2, 0.0, kv_utilisation=UNLIMITED, utilisation=UNLIMITED
    )
    assert engine.swaps["out"] > 10
    assert [trace.reason for trace in outcome.traces] == ["complete"] * 50
