"""Rows that the engine leaves out of a step, for want of memory say, lose nothing but time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from tts_scheduler import CodecRun, Scheduler, SchedulerConfig, StepPlan, StepResult

FRAME = 1920
MakeRig = Callable[..., Any]


def test_a_start_without_room_keeps_waiting_and_comes_again(make_rig: MakeRig) -> None:
    rig = make_rig(slots=2)
    rig.open("a", 5)
    scheduler = rig.scheduler
    plan = rig.plan()
    scheduler.commit(plan, StepResult(0.01), rig.now)
    assert scheduler.plan(rig.now) is None, "a busy loop"
    wake = scheduler.next_wake(rig.now)
    assert wake is not None and rig.now < wake <= rig.now + 0.04
    again = scheduler.plan(wake)
    assert again is not None and again.prefills == plan.prefills


def test_a_row_left_out_makes_the_same_frame_later(make_rig: MakeRig) -> None:
    rig = make_rig(slots=2)
    rig.open("a", 50)
    rig.step()
    plan = rig.plan()
    rig.scheduler.commit(plan, StepResult(0.01), rig.now)
    wake = rig.scheduler.next_wake(rig.now)
    assert wake is not None and wake > rig.now
    again = rig.scheduler.plan(wake)
    assert again is not None and again.decodes == plan.decodes and again.codec == plan.codec


def test_the_pause_grows_and_a_frame_ends_it(make_rig: MakeRig) -> None:
    rig = make_rig(slots=2)
    rig.open("a", 50)
    rig.step()
    pauses = []
    for _ in range(8):
        plan = rig.scheduler.plan(rig.now)
        rig.scheduler.commit(plan, StepResult(0.0), rig.now)
        wake = rig.scheduler.next_wake(rig.now)
        pauses.append(wake - rig.now)
        rig.now = wake
    assert pauses == sorted(pauses) and pauses[-1] == pytest.approx(0.04)
    rig.step()
    assert rig.scheduler._register.speaking["a"].left_out == 0


def test_others_go_on_and_the_row_resumes_where_it_was(make_rig: MakeRig) -> None:
    rig = make_rig(slots=4)
    for id in "ab":
        rig.open(id, 30, finish=True, frames=12)
    rig.steps(3)
    frames = rig.scheduler.stats("a").frames
    asked = _without_room(rig, "a")
    while "b" not in rig.ended:
        rig.steps(1)
    assert rig.scheduler.stats("a").frames == frames == rig.frames["a"]
    assert asked["a"] >= 2
    _without_room(rig)
    while "a" not in rig.ended:
        rig.steps(1)
    assert rig.frames["a"] == 12


def test_a_row_without_room_is_heard_up_to_where_it_is(make_rig: MakeRig) -> None:
    """What is made goes to the codec, whether or not there are frames enough for a packet."""
    rig = make_rig(slots=2)
    rig.open("a", 50)
    rig.steps(2)
    while rig.plan().codec or not rig.pending["a"]:
        rig.steps(1)
    pending = rig.pending["a"]
    _without_room(rig, "a")
    rig.step()
    assert rig.step() == StepPlan(codec=(CodecRun("a", 0, pending),))
    assert rig.pending["a"] == 0


def test_a_step_that_did_less_than_planned_teaches_nothing(make_rig: MakeRig) -> None:
    rig = make_rig(slots=4)
    for id in "ab":
        rig.open(id, 300, finish=True)
    rig.steps(2)
    _without_room(rig, "a")
    learned = rig.scheduler.cost.costs
    for _ in range(20):
        plan = rig.step(seconds=1e-6)
        if "a" not in [decode.id for decode in plan.decodes]:
            learned = rig.scheduler.cost.costs
        assert rig.scheduler.cost.costs == learned
        rig.now += 0.04
    _without_room(rig)
    rig.step(seconds=1e-6)
    assert rig.scheduler.cost.costs != learned


@examples(60)
@given(st.data())
def test_whatever_is_left_out_all_speech_is_made_once_and_in_order(data: st.DataObject) -> None:
    config = SchedulerConfig(slots=4)
    scheduler = Scheduler(config)
    length = dict.fromkeys("abcd", 6)
    frames, pending, sound = (
        dict.fromkeys(length, 0),
        dict.fromkeys(length, 0),
        dict.fromkeys(length, 0),
    )
    now = 0.0
    for id in length:
        scheduler.open(id, prompt_tokens=1, now=now)
        scheduler.append(id, 3, now)
        scheduler.finish(id, now)
    for _ in range(400):
        plan = scheduler.plan(now)
        if plan is None:
            wake = scheduler.next_wake(now)
            if wake is None:
                break
            assert wake > now, "an alarm that rings at once and for nothing"
            now = wake
            continue
        absent = data.draw(st.sets(st.sampled_from("abcd"))) if now < 1.0 else set()
        now += 0.01
        scheduler.commit(plan, _engine(plan, absent, length, frames, pending, sound), now)
    assert scheduler.active == 0
    assert frames == length and sound == dict.fromkeys(length, 6 * FRAME)


def _without_room(rig: Any, *ids: str) -> Counter[str]:
    """From now on the rig's engine leaves these rows out; counts how often it is asked for them."""
    asked: Counter[str] = Counter()
    execute = type(rig).execute

    def partly(plan: StepPlan, seconds: float = 0.01) -> StepResult:
        decodes = [decode for decode in plan.decodes if decode.id not in ids]
        prefills = [prefill for prefill in plan.prefills if prefill.id not in ids]
        made = {work.id for work in decodes} | {work.id for work in prefills}
        asked.update(decode.id for decode in plan.decodes if decode.id in ids)
        runs = [
            run if run.id in made else run._replace(frames=min(run.frames, rig.pending[run.id]))
            for run in plan.codec
        ]
        codec = tuple(run for run in runs if run.frames)
        result: StepResult = execute(rig, StepPlan(tuple(prefills), tuple(decodes), codec), seconds)
        return result

    rig.execute = partly
    return asked


def _engine(
    plan: StepPlan,
    absent: set[str],
    length: dict[str, int],
    frames: dict[str, int],
    pending: dict[str, int],
    sound: dict[str, int],
) -> StepResult:
    made, ended, samples = set(), set(), {}
    for id in [p.id for p in plan.prefills] + [d.id for d in plan.decodes]:
        if id not in absent:
            frames[id] += 1
            pending[id] += 1
            made.add(id)
            if frames[id] == length[id]:
                ended.add(id)
    runs = {run.id: run.frames for run in plan.codec if run.id not in absent}
    runs.update((id, pending[id]) for id in ended)
    for id, count in runs.items():
        assert count <= pending[id], "frames that were never made"
        pending[id] -= count
        samples[id] = count * FRAME
        sound[id] += samples[id]
    return StepResult(0.01, frozenset(made), samples, frozenset(ended))
