from collections.abc import Callable
from typing import Any

import pytest

from tts_scheduler import (
    Admitted,
    CodecRun,
    CostModel,
    Decode,
    Layout,
    Load,
    Phase,
    Prefill,
    Scheduler,
    SchedulerConfig,
    Spoken,
    StepCosts,
    StepResult,
)
from tts_scheduler.policy import SILENT_WAIT, start_at

MakeRig = Callable[..., Any]


# Starting ---------------------------------------------------------------------------------------


def test_the_first_step_makes_the_first_frame_and_its_sound(make_rig: MakeRig) -> None:
    rig = make_rig()
    assert rig.open("a", 5, prompt_tokens=33) == Admitted()
    plan = rig.step()
    assert plan.prefills == (Prefill("a", 0, 33, 1, Layout.STREAMING),)
    assert plan.codec == (CodecRun("a", 0, 1),)
    assert rig.scheduler.stats("a").sent_seconds == pytest.approx(0.08)


def test_complete_text_uses_the_full_text_layout(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.open("a", 5, finish=True)
    assert rig.plan().prefills == (Prefill("a", 0, 10, 5, Layout.FULL_TEXT),)


def test_the_layout_is_settled_at_the_prefill(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.open("a", 5)
    assert rig.plan().prefills[0].layout is Layout.STREAMING
    rig.finish("a")
    rig.step()
    assert rig.scheduler.stats("a").layout is Layout.FULL_TEXT


def test_streaming_can_be_forced_and_full_text_waits(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.open("s", 5, finish=True, layout=Layout.STREAMING)
    rig.open("f", 5, layout=Layout.FULL_TEXT)
    assert rig.plan().prefills == (Prefill("s", 0, 10, 1, Layout.STREAMING),)
    rig.finish("f")
    assert [p.id for p in rig.plan().prefills] == ["s", "f"]


def test_one_token_waits_for_a_second_until_the_longest_wait(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.open("a", 1)
    assert rig.plan() is None
    assert rig.scheduler.next_wake(rig.now) == pytest.approx(rig.now + 0.15)
    rig.now += 0.149
    assert rig.plan() is None
    rig.now += 0.001
    assert rig.plan() is not None


@pytest.mark.parametrize(("tokens", "starts"), [(1, {"one", "four"}), (4, {"four"}), (5, set())])
def test_an_utterance_starts_with_as_many_tokens_as_the_config_says(
    make_rig: MakeRig, tokens: int, starts: set[str]
) -> None:
    rig = make_rig(min_start_tokens=tokens)
    rig.open("one", 1)
    rig.open("four", 4)
    plan = rig.plan()
    assert (set() if plan is None else plan.ids) == starts


def test_no_more_prefills_in_a_step_than_allowed(make_rig: MakeRig) -> None:
    rig = make_rig(slots=8, max_prefills=3)
    for i in range(8):
        rig.open(str(i), 5)
    assert [p.id for p in rig.step().prefills] == ["0", "1", "2"]
    assert [p.id for p in rig.step().prefills] == ["3", "4", "5"]


@pytest.mark.parametrize("slots", [64, 256])
@pytest.mark.parametrize(("prefill", "together"), [(0.0001, 64), (0.01, 8), (1.0, 1)])
def test_as_many_start_at_once_as_their_cost_allows_whatever_the_slots(
    make_rig: MakeRig, slots: int, prefill: float, together: int
) -> None:
    costs = StepCosts(0.010, 0.0, 0.0, 0.001, prefill, 0.0)
    rig = make_rig(costs=costs, slots=slots, start_seconds=0.1)
    for i in range(64):
        rig.open(str(i), 5)
    assert len(rig.step().prefills) == together


def test_rows_with_a_long_lead_stay_out_of_a_step_that_starts_somebody(make_rig: MakeRig) -> None:
    rig = make_rig(slots=8)
    staggered(rig, {"calm": 2.5, "near": 1.5})
    assert {d.id for d in rig.plan().decodes} == {"calm", "near"}
    rig.open("new", 5)
    plan = rig.plan()
    assert [p.id for p in plan.prefills] == ["new"]
    assert {d.id for d in plan.decodes} == {"near"}


def test_finish_without_text_is_the_end_and_says_so(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.open("a")
    assert rig.finish("a") is False
    assert rig.scheduler.stats("a").phase is Phase.ENDED
    assert rig.scheduler.active == 0
    rig.open("b", 1)
    assert rig.finish("b") is True


# Holding ----------------------------------------------------------------------------------------


def test_a_row_without_its_next_token_is_not_in_the_plan(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.open("a", 3)
    plans = rig.steps(3)
    assert plans[1].decodes == (Decode("a", 0, 1),)
    assert plans[2].decodes == (Decode("a", 0, 2),)
    assert rig.plan() is None
    assert rig.scheduler.held == 1
    assert rig.scheduler.next_wake(rig.now) is None
    rig.append("a", 1)
    assert rig.plan().decodes == (Decode("a", 0, 3),)
    assert rig.scheduler.held == 0


def test_after_the_end_of_the_text_frames_need_no_more_tokens(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.open("a", 3, frames=12)
    rig.steps(3)
    rig.finish("a")
    rig.steps(9)
    assert rig.ended == ["a"]


def test_a_row_about_to_be_held_flushes_its_frames(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.open("a", 40)
    while rig.step() is not None:
        pass
    assert rig.scheduler.held == 1
    assert rig.pending["a"] == 0
    assert any(run.frames > 1 for plan in rig.plans for run in plan.codec)


def test_held_time_is_counted(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.open("a", 2)
    rig.steps(2)
    rig.now += 0.5
    assert rig.scheduler.stats("a", rig.now).held_seconds == pytest.approx(0.5)
    rig.append("a", 1)
    assert rig.scheduler.stats("a", rig.now + 9.0).held_seconds == pytest.approx(0.5)


def test_an_underrun_for_want_of_text_is_told_from_one_of_ours(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.open("text", 2)
    rig.steps(2)
    rig.now += 1.0
    rig.append("text", 3)
    rig.steps(2)
    stats = rig.scheduler.stats("text")
    assert (stats.underruns, stats.starved_underruns) == (1, 1)
    rig.open("ours", 50)
    rig.step()
    rig.step(0.2)
    rig.step()
    stats = rig.scheduler.stats("ours")
    assert (stats.underruns, stats.starved_underruns) == (1, 0)


# Parking ----------------------------------------------------------------------------------------


def test_a_row_far_ahead_is_parked_and_wakes_on_time(make_rig: MakeRig) -> None:
    rig = make_rig(lead_cap=1.0)
    rig.open("a", 200, finish=True)
    while rig.step() is not None:
        pass
    wake = rig.scheduler.next_wake(rig.now)
    assert wake is not None and wake > rig.now
    assert rig.scheduler.plan(wake - 1e-6) is None
    assert rig.scheduler.plan(wake) is not None


def test_lead_stays_within_its_cap_and_one_codec_run(make_rig: MakeRig) -> None:
    rig = make_rig(lead_cap=1.0)
    rig.open("a", 300, finish=True)
    rig.open("b", 300, finish=True, lead_cap=0.5)
    most = {"a": 0.0, "b": 0.0}
    for _ in range(200):
        rig.steps(1)
        for id in most:
            row = rig.scheduler._requests.speaking.get(id)
            if row is not None:
                most[id] = max(most[id], row.playback.lead(rig.now))
    assert 0.9 < most["a"] <= 1.0 + 0.32
    assert 0.4 < most["b"] <= 0.5 + 0.32
    assert rig.scheduler.stats("a").underruns == rig.scheduler.stats("b").underruns == 0


def test_a_played_report_can_wake_a_parked_row(make_rig: MakeRig) -> None:
    rig = make_rig(lead_cap=1.0)
    rig.open("a", 200, finish=True)
    while rig.step() is not None:
        pass
    rig.scheduler.played("a", 0.9, rig.now)
    assert rig.plan() is not None


def test_a_cap_that_grows_wakes_a_parked_row_and_lets_it_go_on(make_rig: MakeRig) -> None:
    rig = make_rig(lead_cap=1.0)
    rig.open("a", 200, finish=True)
    while rig.step() is not None:
        pass
    for cap in (2.0, 5.0):
        rig.scheduler.set_lead_cap("a", cap, rig.now)
        while rig.step() is not None:
            pass
        lead = rig.scheduler._requests.speaking["a"].playback.lead(rig.now)
        assert cap - 0.32 < lead <= cap + 0.32
    rig.scheduler.set_lead_cap("a", 1.0, rig.now)
    assert rig.plan() is None
    rig.scheduler.set_lead_cap("nobody", 1.0, rig.now)


def test_a_cap_below_the_reserve_counts_as_the_reserve(make_rig: MakeRig) -> None:
    rig = make_rig(step_seconds=0.02)
    rig.open("a", 100, finish=True, lead_cap=0.0, frames=100)
    while not rig.ended:
        rig.steps(1)
    assert rig.scheduler.stats("a").underruns == 0


# Order ------------------------------------------------------------------------------------------


def staggered(rig: Any, leads: dict[str, float]) -> None:
    """Rows on air with these leads at the present time; one frame makes their next packet."""
    for id in leads:
        rig.open(id, 500, finish=True)
    while len(rig.scheduler._requests.speaking) < len(leads):
        rig.step()
    for id, lead in leads.items():
        give_lead(rig, id, lead)


def give_lead(rig: Any, id: str, lead: float) -> None:
    row = rig.scheduler._requests.speaking[id]
    row.parked = False
    row.playback.played(row.playback.sent_seconds, rig.now)
    row.playback.sent(round(lead * 24_000), rig.now)
    row.playback.unsent_samples = 1000
    row.codec_pending = 0


def test_the_earliest_deadline_goes_first(make_rig: MakeRig) -> None:
    rig = make_rig(slots=8, max_rows=2)
    staggered(rig, {"a": 2.0, "b": 0.5, "c": 1.0, "d": 0.2})
    assert [d.id for d in rig.step().decodes] == ["d", "b"]


def test_rows_that_can_wait_are_left_out_when_a_row_cannot_afford_them(make_rig: MakeRig) -> None:
    rig = make_rig(costs=StepCosts(0.010, 0.010, 0.0, 0.0, 0.0, 0.0), slots=8, utilisation=9)
    staggered(rig, {"far": 2.5, "further": 2.6, "close": 0.035})
    plan = rig.plan()  # all three would take 40 ms, two take 30 ms
    assert [d.id for d in plan.decodes] == ["close", "far"]


def test_nobody_is_left_out_without_need(make_rig: MakeRig) -> None:
    rig = make_rig(costs=StepCosts(0.010, 0.010, 0.0, 0.0, 0.0, 0.0), slots=8, utilisation=9)
    staggered(rig, {"far": 2.5, "further": 2.6, "close": 0.2})
    assert len(rig.plan().decodes) == 3


@pytest.mark.parametrize(
    ("lead", "first"), [(1.0, ["new", "a"]), (0.2, ["new", "a"]), (0.06, ["a", "b"])]
)
def test_a_row_without_sound_goes_first_unless_somebody_on_air_pays(
    make_rig: MakeRig, lead: float, first: list[str]
) -> None:
    rig = make_rig(step_seconds=0.05, slots=4, max_rows=2, utilisation=9.0)
    staggered(rig, {"a": 2.0, "b": 2.0})
    rig.open("new", 50)
    plan = rig.step()
    assert [p.id for p in plan.prefills] == ["new"]
    assert "new" not in {run.id for run in plan.codec}  # a second packet would be late
    give_lead(rig, "a", lead)
    give_lead(rig, "b", lead)
    assert [d.id for d in rig.plan().decodes] == first


def test_a_start_waits_while_somebody_on_air_would_pay_for_it(make_rig: MakeRig) -> None:
    costs = StepCosts(0.010, 0.0, 0.0, 0.050, 0.0, 0.0)  # a step with a prefill takes 60 ms
    rig = make_rig(costs=costs, slots=8)
    staggered(rig, {"on air": 0.055})
    rig.open("new", 5)
    assert rig.plan().prefills == ()
    rig = make_rig(costs=costs, slots=8)
    staggered(rig, {"on air": 0.070})
    rig.open("new", 5)
    assert [p.id for p in rig.plan().prefills] == ["new"]


@pytest.mark.parametrize(("delivery", "enters"), [(0.0, True), (0.009, True), (0.011, False)])
def test_a_start_leaves_others_the_time_of_their_delivery(
    make_rig: MakeRig, delivery: float, enters: bool
) -> None:
    costs = StepCosts(0.010, 0.0, 0.0, 0.050, 0.0, 0.0)
    rig = make_rig(costs=costs, slots=8, delivery_seconds=delivery)
    staggered(rig, {"on air": 0.070})
    rig.open("new", 5)
    assert bool(rig.plan().prefills) is enters


def test_a_start_counts_everybody_the_limit_makes_wait(make_rig: MakeRig) -> None:
    """Four rows and one per step: the last of them has no time to give away."""
    costs = StepCosts(0.010, 0.0, 0.0, 0.010, 0.0, 0.0)
    for fourth, enters in ((0.050, False), (0.060, True)):
        rig = make_rig(costs=costs, slots=8, max_rows=1)
        staggered(rig, {"a": 0.030, "b": 0.040, "c": 0.050, "d": fourth})
        rig.open("new", 5)
        assert bool(rig.plan().prefills) is enters, fourth


def test_no_start_while_somebody_is_late_through_our_fault(make_rig: MakeRig) -> None:
    rig = make_rig(slots=8)
    staggered(rig, {"on air": 0.1})
    rig.now += 0.3
    rig.open("new", 5)
    while not rig.scheduler.stats("on air").underruns:
        assert rig.step().prefills == ()
    assert [p.id for p in rig.plan().prefills] == ["new"]


def test_a_row_whose_text_is_late_does_not_keep_others_from_starting(make_rig: MakeRig) -> None:
    rig = make_rig(slots=8)
    rig.open("slow text", 3)
    rig.steps(3)
    rig.now += 1.0
    rig.append("slow text", 1)
    rig.open("new", 5)
    plan = rig.plan()
    assert [p.id for p in plan.prefills] == ["new"]
    assert [d.id for d in plan.decodes] == ["slow text"]


def test_no_start_that_would_take_the_machine_below_real_time(make_rig: MakeRig) -> None:
    costs = StepCosts(0.010, 0.020, 0.0, 0.0, 0.0, 0.0)  # 4 rows: 90 ms for 80 ms of sound
    rig = make_rig(costs=costs, slots=8, utilisation=9.0)
    staggered(rig, {"a": 2.0, "b": 2.0, "c": 2.0})
    rig.open("fourth", 5)
    assert rig.plan().prefills == ()
    rig.scheduler.cancel("a", rig.now)
    assert [p.id for p in rig.plan().prefills] == ["fourth"]


def test_rows_with_a_long_lead_go_on_when_the_start_they_yield_to_does_not_fit(
    make_rig: MakeRig,
) -> None:
    costs = StepCosts(0.010, 0.050, 0.0, 0.0, 0.0, 0.0)  # 2 rows: 110 ms for 80 ms of sound
    rig = make_rig(costs=costs, slots=8, utilisation=9.0)
    staggered(rig, {"calm": 2.5})
    rig.open("new", 5)
    plan = rig.plan()
    assert plan is not None, "nothing is done, and nothing is waited for"
    assert [d.id for d in plan.decodes] == ["calm"]
    assert rig.scheduler.next_wake(rig.now) == rig.now


def test_a_pressing_row_yields_to_nobody_however_short_the_lead_to_yield_from(
    make_rig: MakeRig,
) -> None:
    costs = StepCosts(0.050, 0.010, 0.0, 0.0, 0.0, 0.0)
    rig = make_rig(costs=costs, slots=8, yield_lead=0.0, codec_chunks=(2,), utilisation=9.0)
    rig.open("a", 5, finish=True, listener_free_at=rig.now + 0.2)
    rig.step()
    assert rig.scheduler.stats("a").sent_seconds == 0.0, "its first run waits for a second frame"
    assert [d.id for d in rig.plan().decodes] == ["a"]


def test_somebody_is_served_when_nobody_can_be_without_cost_to_the_last(make_rig: MakeRig) -> None:
    """One row per step: the third is late if the first takes its 10 ms, and also if it does not."""
    costs = StepCosts(0.030, 0.010, 0.0, 0.0, 0.0, 0.0)
    rig = make_rig(costs=costs, slots=8, max_rows=1, reserve=0.0, utilisation=9.0)
    staggered(rig, {"a": 0.085, "b": 0.100, "c": 0.115})
    plan = rig.plan()
    assert plan is not None, "nothing is done, and nothing is waited for"
    assert [d.id for d in plan.decodes] == ["a"]


def test_a_row_without_a_listener_yet_is_not_parked_however_small_its_cap(
    make_rig: MakeRig,
) -> None:
    costs = StepCosts(0.200, 0.0, 0.0, 0.0, 0.0, 0.0)  # slower than speech
    rig = make_rig(costs=costs, slots=8, lead_cap=0.3, codec_chunks=(8,))
    rig.open("a", 9, finish=True, frames=12)
    rig.steps(12)
    assert rig.ended == ["a"]


def test_a_long_prefill_enters_once_everybody_has_the_lead_for_it(make_rig: MakeRig) -> None:
    """Yielding to a start keeps leads at 2 s: one that needs more would wait for ever."""
    costs = StepCosts(0.010, 0.0, 0.0, 2.3, 0.0, 0.0)
    rig = make_rig(costs=costs, slots=8)
    staggered(rig, {"on air": 0.5})
    rig.open("new", 5)
    plans = rig.steps(200)
    assert ["new"] in [[p.id for p in plan.prefills] for plan in plans]
    assert rig.scheduler.stats("on air").underruns == 0


def test_a_prefill_longer_than_any_lead_does_not_wait_for_ever(make_rig: MakeRig) -> None:
    costs = StepCosts(0.010, 0.0, 0.0, 5.0, 0.0, 0.0)
    rig = make_rig(costs=costs, slots=8)
    staggered(rig, {"on air": 2.0})
    rig.open("new", 5)
    assert [p.id for p in rig.plan().prefills] == ["new"]


def test_the_oldest_start_goes_first(make_rig: MakeRig) -> None:
    rig = make_rig(slots=2, max_prefills=1)
    rig.open("first")
    rig.open("second", 5)
    rig.now += 0.1
    rig.append("first", 5)
    assert [p.id for p in rig.plan().prefills] == ["second"]


# Ending -----------------------------------------------------------------------------------------


def test_a_cancelled_row_is_not_planned_and_its_slot_is_free_at_once(make_rig: MakeRig) -> None:
    rig = make_rig(slots=1)
    rig.open("a", 50)
    rig.steps(3)
    assert rig.scheduler.cancel("a", rig.now) is True
    assert rig.plan() is None
    rig.open("b", 50)
    assert rig.plan().prefills[0].slot == 0


def test_cancel_is_idempotent(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.open("a", 5)
    assert rig.scheduler.cancel("a", rig.now) is True
    assert rig.scheduler.cancel("a", rig.now) is False
    assert rig.scheduler.cancel("never opened", rig.now) is False


@pytest.mark.parametrize("at", ["prefill", "decode", "end"])
def test_a_cancel_while_the_step_is_under_way_is_passed_over(make_rig: MakeRig, at: str) -> None:
    rig = make_rig(slots=2)
    rig.open("a", 50, finish=True, frames=3)
    rig.open("b", 50)
    rig.steps({"prefill": 0, "decode": 1, "end": 2}[at])
    plan = rig.plan()
    result = rig.execute(plan)
    assert "a" in plan.ids
    assert rig.scheduler.cancel("a", rig.now) is True
    rig.scheduler.commit(plan, result, rig.now + 0.01)
    assert rig.scheduler.active == 1
    assert rig.scheduler._requests.free_slots == [0]
    assert rig.scheduler.plan(rig.now + 0.01).ids == {"b"}


def test_speech_that_ends_frees_its_slot_and_is_known_until_the_next_look_at_the_queue(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(slots=2)
    rig.open("a", 2, finish=True, frames=4)
    rig.steps(4)
    stats = rig.scheduler.stats("a")
    assert (stats.phase, stats.frames) == (Phase.ENDED, 4)
    assert stats.sent_seconds == pytest.approx(4 * 0.08)
    assert rig.scheduler.active == 0
    rig.scheduler.expire(rig.now)
    with pytest.raises(KeyError):
        rig.scheduler.stats("a")


def test_turns_that_end_where_nobody_speaks_leave_nothing_behind(make_rig: MakeRig) -> None:
    rig = make_rig()
    for number in range(20):
        rig.open(f"interrupted-{number}", 1)
        rig.scheduler.cancel(f"interrupted-{number}", rig.now)
        assert rig.scheduler.expire(rig.now) == () and rig.scheduler.plan(rig.now) is None
    assert not rig.scheduler._requests._over


def test_a_row_that_fails_at_its_prefill_ends(make_rig: MakeRig) -> None:
    rig = make_rig(slots=1)
    rig.open("a", 5)
    plan = rig.plan()
    rig.scheduler.commit(plan, StepResult(0.01, ended=frozenset({"a"})), rig.now)
    assert rig.scheduler.active == 0
    rig.open("b", 5)
    assert rig.plan().prefills[0].slot == 0


def test_what_comes_in_for_an_utterance_that_is_over_is_ignored(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.open("a", 5)
    rig.scheduler.cancel("a", rig.now)
    rig.append("a", 5)
    assert rig.finish("a") is False
    rig.scheduler.played("a", 1.0, rig.now)
    assert rig.plan() is None


def test_an_id_in_use_is_refused(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.open("a", 5)
    with pytest.raises(ValueError, match="open already"):
        rig.open("a", 5)


def test_text_after_the_end_of_the_text_is_an_error(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.open("a", 5, finish=True)
    with pytest.raises(ValueError, match="after its text was finished"):
        rig.append("a", 1)
    rig.open("b", 5)
    with pytest.raises(ValueError, match="less than nothing"):
        rig.append("b", -1)


# The rest ---------------------------------------------------------------------------------------


def test_steps_teach_the_cost_model() -> None:
    cost = CostModel()
    scheduler = Scheduler(SchedulerConfig(slots=4), cost)
    scheduler.open("a", prompt_tokens=10, now=0.0)
    scheduler.append("a", 1000, 0.0)
    now = 0.0
    for _ in range(400):
        plan = scheduler.plan(now)
        if plan is None:
            wake = scheduler.next_wake(now)
            assert wake is not None
            now = wake
            continue
        now += 0.04
        frames = frozenset(plan.ids) if plan.rows else frozenset()
        samples = {run.id: run.frames * 1920 for run in plan.codec}
        scheduler.commit(plan, StepResult(0.04, frames, samples), now)
    assert cost.predict(Load(0, 0, 1, 1)) == pytest.approx(0.04, rel=0.05)


def test_an_idle_scheduler_sleeps_until_something_comes_in(make_rig: MakeRig) -> None:
    rig = make_rig()
    assert rig.plan() is None
    assert rig.scheduler.next_wake(rig.now) is None
    rig.open("a")
    assert rig.scheduler.next_wake(rig.now) is None


def test_the_alarm_rings_when_a_start_may_leave_its_listener_s_last_turn(make_rig: MakeRig) -> None:
    rig = make_rig()
    rig.open("a", 5, listener_free_at=rig.now + 5.0)
    assert rig.plan() is None
    wake = rig.scheduler.next_wake(rig.now)
    assert wake == pytest.approx(rig.now + 2.0)
    assert rig.scheduler.plan(wake) is not None


def test_the_alarm_rings_when_the_queue_times_out(make_rig: MakeRig) -> None:
    rig = make_rig(slots=1, queue_timeout=0.5)
    rig.open("held", 2)
    rig.steps(2)
    rig.open("queued", 5)
    wake = rig.scheduler.next_wake(rig.now)
    assert wake == pytest.approx(rig.now + 0.5)
    assert rig.scheduler.expire(wake) == ("queued",)


def test_gauges_count_phases(make_rig: MakeRig) -> None:
    rig = make_rig(slots=2)
    rig.open("held", 2)
    rig.open("waiting")
    rig.open("queued", 3)
    rig.steps(2)
    scheduler = rig.scheduler
    assert (scheduler.active, scheduler.held, scheduler.queued, scheduler.capacity) == (2, 1, 1, 2)


# What another engine has spoken -------------------------------------------------------------------


def resumed(text: int, spoken: Spoken, finished: bool) -> Scheduler:
    scheduler = Scheduler(SchedulerConfig(slots=2, max_start_wait=0.0))
    scheduler.open(
        "a",
        prompt_tokens=10,
        now=5.0,
        layout=Layout.STREAMING,
        spoken=spoken,
        listener_free_at=5.4,
        continues=True,
    )
    scheduler.append("a", text, 5.0)
    if finished:
        scheduler.finish("a", 5.0)
    return scheduler


def test_speech_goes_on_behind_what_another_engine_has_spoken() -> None:
    scheduler = resumed(20, Spoken(12, 23_040, 512, held_seconds=1.5), finished=False)
    plan = scheduler.plan(5.0)
    assert plan is not None and plan.resumes
    assert plan.prefills == (Prefill("a", 0, 10, 1, Layout.STREAMING, 12),)
    assert plan.prefills[0].positions == 10 + 1 + 2 + 12
    scheduler.commit(plan, StepResult(0.1, frozenset({"a"}), {"a": 1_920}), 5.1)
    stats = scheduler.stats("a")
    assert (stats.frames, stats.held_seconds, stats.underruns) == (13, 1.5, 0)
    assert stats.sent_seconds == pytest.approx((23_040 - 512 + 2_048) / 24_000)
    plan = scheduler.plan(5.1)
    assert plan is not None and plan.decodes == (Decode("a", 0, 13),)


def test_a_start_waits_a_moment_for_the_text_of_its_silence() -> None:
    scheduler = Scheduler(SchedulerConfig(slots=4))
    for id, silent, text in (("a", 2, 2), ("b", 2, 3), ("c", 0, 2), ("d", 2, 1)):
        scheduler.open(id, prompt_tokens=10, now=5.0, silent_start=silent)
        scheduler.append(id, text, 5.0)
    waiting = scheduler._requests.waiting
    times = [start_at(waiting[id], scheduler.config) - 5.0 for id in "abcd"]
    assert times == pytest.approx([2 * SILENT_WAIT, 0.0, 0.0, scheduler.config.max_start_wait])


@pytest.mark.parametrize(
    ("text", "finished", "known"), [(3, False, 2), (1, True, 2), (2, False, 0)], ids=str
)
def test_silence_that_is_known_goes_into_the_prefill_with_its_text(
    text: int, finished: bool, known: int
) -> None:
    scheduler = Scheduler(SchedulerConfig(slots=2, max_start_wait=0.0))
    scheduler.open("a", prompt_tokens=10, now=5.0, layout=Layout.STREAMING, silent_start=2)
    scheduler.append("a", text, 5.0)
    if finished:
        scheduler.finish("a", 5.0)
    plan = scheduler.plan(5.0)
    assert plan is not None and not plan.resumes  # its time is learned from
    assert plan.prefills == (Prefill("a", 0, 10, 1, Layout.STREAMING, 0, known),)
    assert plan.prefills[0].positions == 10 + 1 + 2 + known
    assert [run.frames for run in plan.codec] == [1]  # nothing else is to go through the codec
    scheduler.commit(plan, StepResult(0.1, frozenset({"a"}), {"a": (known + 1) * 1_920}), 5.1)
    assert scheduler.stats("a").frames == known + 1
    plan = scheduler.plan(5.1)
    waits = known + 1 >= text and not finished
    assert (plan is None) if waits else (plan is not None and plan.decodes[0].frame == known + 1)


def test_speech_that_waits_for_text_waits_after_a_move_as_well() -> None:
    scheduler = resumed(12, Spoken(12, 23_040), finished=False)
    assert scheduler.plan(6.0) is None and scheduler.next_wake(6.0) is None
    scheduler.append("a", 1, 6.0)
    plan = scheduler.plan(6.0)
    assert plan is not None and [work.id for work in plan.prefills] == ["a"]


def test_the_listener_s_report_counts_what_was_heard_before_the_move() -> None:
    scheduler = resumed(60, Spoken(25, 48_000), finished=True)
    plan = scheduler.plan(5.0)
    assert plan is not None
    scheduler.commit(plan, StepResult(0.1, frozenset({"a"}), {"a": 1_920}), 5.1)
    scheduler.played("a", 1.0, 5.1)  # of two seconds: one is left, more than the reserve
    row = scheduler._requests.utterances["a"]
    assert row.playback.runs_out_at == pytest.approx(6.1, abs=0.1)


def test_what_a_move_costs_teaches_nothing_about_prompts() -> None:
    scheduler = resumed(20, Spoken(12, 23_040), finished=True)
    plan = scheduler.plan(5.0)
    assert plan is not None
    before = scheduler.cost.costs_at(1)
    scheduler.commit(plan, StepResult(9.0, frozenset({"a"}), {"a": 1_920}), 14.0)
    assert scheduler.cost.costs_at(1) == before


@pytest.mark.parametrize("lead", [0.5, 1.0, 2.0])
def test_a_turn_that_moved_does_not_run_dry_for_the_sake_of_others(
    make_rig: MakeRig, lead: float
) -> None:
    """Where everybody is late already: a new turn waits, this one does not wait longer than its
    listener can."""
    rig = make_rig(step_seconds=0.1, utilisation=100.0)
    for number in range(3):
        rig.open(f"on-air-{number}", 200, finish=True)
    rig.steps(40)
    begun = rig.now
    rig.open("new", 20, finish=True)
    rig.scheduler.open(
        "moved",
        prompt_tokens=10,
        now=begun,
        listener_free_at=begun + lead,
        continues=True,
        spoken=Spoken(12, 23_040),
    )
    rig.length["moved"] = 10_000
    rig.append("moved", 200)
    while not any(prefill.id == "moved" for plan in rig.plans for prefill in plan.prefills):
        rig.step()
        assert rig.now < begun + lead + 0.2
    assert rig.now <= begun + lead
    assert not any(prefill.id == "new" for plan in rig.plans for prefill in plan.prefills)
