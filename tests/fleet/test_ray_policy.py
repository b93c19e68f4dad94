"""The autoscaling policy, the roster and the replica's flags, without Ray."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from realtime_tts.fleet.members import Member
from realtime_tts.fleet.ray_policy import Policy, forecast, replicas
from realtime_tts.fleet.ray_replica import ReplicaConfig
from realtime_tts.fleet.ray_roster import FORGET_SECONDS, Roster


def ask(policy: Policy, loads: list[float], current: int, state: Any = None, **more: Any) -> Any:
    context = SimpleNamespace(
        aggregated_metrics={
            "load": dict(enumerate(loads)),
            "loading_seconds": dict.fromkeys(range(len(loads)), more.get("loading", 0.0)),
        },
        target_num_replicas=current,
        capacity_adjusted_min_replicas=2,
        capacity_adjusted_max_replicas=8,
        policy_state=state or {},
        current_time=more.get("now", 0.0),
    )
    return policy(context)


@pytest.mark.parametrize(
    ("loads", "wanted"),
    [
        ([0.6, 0.6], 2),  # as full as they may be
        ([0.61, 0.6], 3),
        ([1.5, 1.5], 5),  # turns wait
        ([0.0, 0.0], 2),  # the floor
        ([5.0, 5.0], 8),  # the ceiling
        ([], 2),  # nobody has said anything yet
        ([0.4, 0.3, 0.3], 3),  # two would do, but they would be full at once
        ([0.3, 0.3, 0.2], 2),
        ([0.1, 0.1, 0.1], 2),
    ],
)
def test_the_load_says_how_many_there_are_to_be(loads: list[float], wanted: int) -> None:
    assert ask(Policy(up=0.6, down=0.3), loads, max(2, len(loads)))[0] == wanted


def test_what_is_removed_leaves_the_others_below_the_mark_for_more() -> None:
    for current in range(2, 9):
        for hundredths in range(0, 900):
            load = hundredths / 100
            after = replicas(load, load, current, 0.6, 0.3)
            assert load / max(after, 1) <= 0.6 + 1e-6
            assert after >= current or load < 0.3 * current


def test_growth_is_carried_on_for_as_long_as_a_replica_takes_to_load() -> None:
    policy, state = Policy(up=0.6, down=0.3), None
    for second in range(11):  # from 0.4 to 0.9 in ten seconds: 0.05 a second
        load = 0.4 + 0.05 * second
        wanted, state = ask(policy, [load / 2] * 2, 2, state, now=float(second), loading=30.0)
    assert wanted == 3  # twice 0.9 at most, not 0.9 + 1.5
    assert ask(policy, [0.45] * 2, 2, state, now=11.0, loading=4.0)[0] == 2  # 1.1 by then


def test_a_load_that_falls_is_taken_as_it_is() -> None:
    assert forecast(0.5, 10.0, [(0.0, 2.0)], 60.0) == 0.5
    assert forecast(0.5, 4.0, [(0.0, 0.1)], 60.0) == 0.5  # too short to tell
    assert forecast(0.5, 10.0, [(0.0, 0.4)], 20.0) == pytest.approx(0.7)


def test_what_was_a_minute_ago_is_forgotten() -> None:
    _, state = ask(
        Policy(up=0.6, down=0.3), [0.1, 0.1], 2, {"seen": [(0.0, 9.0), (50.0, 0.1)]}, now=70.0
    )
    assert [at for at, _ in state["seen"]] == [50.0, 70.0]


def test_the_roster_knows_who_announces_itself_and_forgets_who_does_not() -> None:
    now = [0.0]
    roster = Roster(lambda: now[0])
    one, two = Member("10.0.0.1", 1, 2), Member("10.0.0.2", 1, 2)
    roster.announce(two)
    assert roster.members() is None, "others have not had the time"
    now[0] = 3.0
    roster.announce(one)
    assert roster.members() == [one, two]
    now[0] = FORGET_SECONDS + 1
    assert roster.members() == [one]
    roster.leave(one)
    roster.leave(one)
    assert roster.members() == []


def test_a_replica_with_several_gpus_has_an_engine_on_each() -> None:
    assert "--devices" not in ReplicaConfig(gpus=1).last_flags()
    assert ReplicaConfig(gpus=2).last_flags()[-2:] == ["--devices", "all"]
    with pytest.raises(msgspec.ValidationError, match="drain_second"):
        msgspec.convert({"drain_second": 3}, ReplicaConfig)
