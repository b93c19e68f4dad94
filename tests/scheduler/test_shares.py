"""Under overload each account gets its share of the machine, not what it grabs."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest

from tts_scheduler import SchedulerConfig, StepCosts, StepPlan
from tts_scheduler.machine import Machine
from tts_scheduler.playback import FRAME_SECONDS
from tts_scheduler.simulator import Simulation
from tts_scheduler.workload import Workload

COSTS = StepCosts()
SLOTS = 12
pytestmark = pytest.mark.slow
WARM_UP, END = 10.0, 40.0


def frames_given(
    sessions: dict[str, int], shares: dict[str, float], *, named: bool = True
) -> dict[str, float]:
    """Each account's part of all frames, where so many sessions of each ask without a pause."""
    owners = [account for account, count in sessions.items() for _ in range(count)]
    made: Counter[str] = Counter()

    def owner(id: str) -> str:
        return owners[int(id.partition(".")[0])]

    def watch(simulation: Simulation, plan: StepPlan) -> None:
        if WARM_UP <= simulation.now <= END:
            made.update(owner(row.id) for row in plan.prefills)
            made.update(owner(row.id) for row in plan.decodes)

    workload = Workload(
        len(owners), turns=6, arrival_seconds=2.0, pause_seconds=0.1, barge_in=0.0, reporting=0.0
    )
    config = SchedulerConfig(slots=SLOTS)
    simulation = Simulation(workload, Machine(COSTS), config, seed=1, watch=watch)
    open_one = simulation.scheduler.open

    def open_for_account(id: str, **options: Any) -> Any:
        account = owner(id)
        return open_one(id, payer=(account, shares.get(account, 1.0)), **options)

    if named:
        simulation.scheduler.open = open_for_account  # type: ignore[method-assign]
    simulation.run()
    assert simulation.now > END, "all of them ask for turns to the end of what was counted"
    total = sum(made.values())
    assert total > 0.8 * SLOTS * (END - WARM_UP) / FRAME_SECONDS, "the machine is full"
    return {account: count / total for account, count in made.items()}


five_times = partial(pytest.approx, rel=0.1)


def test_at_five_times_the_load_no_key_gets_more_than_its_share() -> None:
    sessions = {"greedy": 36, "b": 8, "c": 8, "d": 8}
    assert sum(sessions.values()) == 5 * SLOTS
    alone = frames_given(sessions, {}, named=False)
    assert alone["greedy"] > 0.5, "without accounts, who asks most gets most"
    assert frames_given(sessions, {}) == five_times(dict.fromkeys(sessions, 0.25))


def test_shares_of_different_sizes_are_kept_as_well() -> None:
    sessions, shares = {"large": 20, "small": 20, "other": 20}, {"large": 2.0}
    given = frames_given(sessions, shares)
    assert given == five_times({"large": 0.5, "small": 0.25, "other": 0.25})


def test_of_more_keys_than_there_are_slots_the_greedy_one_gets_hardly_more() -> None:
    """A place in the queue is a matter of chance there: it has one sooner who asks more often."""
    sessions = {"greedy": 20} | {f"k{number}": 2 for number in range(20)}
    given = frames_given(sessions, {})
    assert given["greedy"] < 0.08, "a 21st is 0.048; without accounts it is a third"
    assert min(given.values()) > 0.024, "nobody gets less than half of a share"


def test_what_others_leave_may_be_had() -> None:
    given = frames_given({"greedy": 58, "modest": 2}, {})
    assert given["modest"] > 0.1, "of 60 sessions it has two, which would be 0.033"
    assert given["greedy"] > 0.8
