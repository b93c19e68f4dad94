"""Who gets pages, who gives them up, and who waits: the memory part of plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tts_scheduler import (
    Admitted,
    DoesNotFit,
    KVCacheSize,
    Layout,
    Playback,
    Queued,
    Refused,
    Reservation,
    Spoken,
    StepPlan,
)
from tts_scheduler.admission import peak_pages
from tts_scheduler.policy import (
    MEMORY_AHEAD,
    PREEMPT_AHEAD,
    may_preempt_at,
    needs_memory_by,
    resume_at,
)
from tts_scheduler.utterance import Utterance

MakeRig = Callable[..., Any]
PAGE = 16


def memory(pages: int, max_frames: int = 60) -> KVCacheSize:
    return KVCacheSize(pages, PAGE, pages * PAGE, max_frames)


@pytest.fixture
def rig_of(make_rig: MakeRig) -> MakeRig:
    """A rig whose engine has so many pages, and whose admission does not mind."""

    def make(
        pages: int, step_seconds: float = 0.01, max_frames: int = 60, **settings: object
    ) -> Any:
        settings = {"slots": 8, "kv_utilisation": 1e6, "max_start_wait": 0.0, **settings}
        return make_rig(step_seconds=step_seconds, kv_cache=memory(pages, max_frames), **settings)

    return make


def row(rig: Any, id: str) -> Utterance:
    found: Utterance = rig.scheduler._requests.utterances[id]
    return found


def lead(rig: Any, id: str, seconds: float) -> None:
    """Its listener has so much left to hear."""
    row(rig, id).playback.runs_out_at = rig.now + seconds


def speaking(rig: Any, ids: str) -> None:
    """Each has been heard, and has text for a long time."""
    for id in ids:
        rig.open(id, 300, prompt_tokens=12, layout=Layout.STREAMING)
    rig.steps(3)


def lacking(rig: Any, id: str, seconds: float) -> None:
    """No page is free, its next frame needs one, and its listener has `seconds` to hear."""
    kv = rig.scheduler._requests.kv
    found = row(rig, id)
    found.prompt_positions = kv.capacity(found.slot) + 1
    found.frame_limit = 0
    other = next(r for r in rig.scheduler._requests.speaking.values() if r is not found)
    kv.reserve([Reservation("x", other.slot, len(kv.table(other.slot)), tuple(kv.free))])
    lead(rig, id, seconds)


def all_lacking(rig: Any, **seconds: float) -> None:
    """Rows that speak, of which none has a page for its next frame, or sound that can be made."""
    speaking(rig, "".join(seconds))
    for id, left in seconds.items():
        lacking(rig, id, left)
        row(rig, id).codec_pending = 0


# Reservations -----------------------------------------------------------------------------------


def test_a_prompt_and_every_frame_has_its_page(rig_of: MakeRig) -> None:
    rig = rig_of(8)
    rig.open("a", 3, finish=True, frames=40, prompt_tokens=12)
    pages = 0
    for frame in range(40):
        plan = rig.steps(1)[0]
        pages += sum(len(r.pages) for r in plan.reservations)
        assert pages == -(-(12 + 3 + 2 + frame) // PAGE)
    assert rig.ended == ["a"] and len(rig.scheduler._requests.kv.free) == 8


def test_an_interrupt_frees_pages_at_once(rig_of: MakeRig) -> None:
    rig = rig_of(8)
    for id in "ab":
        rig.open(id, 3, prompt_tokens=20, layout=Layout.STREAMING)
    rig.step()
    held = len(rig.scheduler._requests.kv.table(row(rig, "a").slot))
    free = len(rig.scheduler._requests.kv.free)
    rig.scheduler.cancel("a", rig.now)
    assert held == 2 and len(rig.scheduler._requests.kv.free) == free + held


def test_who_is_interrupted_during_a_step_gets_none_of_its_pages(rig_of: MakeRig) -> None:
    rig = rig_of(8)
    rig.open("a", 3)
    plan = rig.plan()
    assert plan.reservations
    rig.scheduler.cancel("a", rig.now)
    rig.scheduler.commit(plan, rig.execute(plan), rig.now)
    assert sorted(rig.scheduler._requests.kv.free) == list(range(1, 9))


# Preemption -------------------------------------------------------------------------------------


def test_a_row_that_lacks_a_page_waits_while_its_listener_has_plenty(rig_of: MakeRig) -> None:
    rig = rig_of(9)
    all_lacking(rig, a=2.0, b=2.6)
    assert rig.plan() is None
    wake = rig.scheduler.next_wake(rig.now)
    assert wake == pytest.approx(may_preempt_at(row(rig, "a")))
    rig.now = wake
    plan = rig.plan()
    assert [out.id for out in plan.swap_outs] == ["b"]
    assert [decode.id for decode in plan.decodes] == ["a"]


def test_a_parked_row_that_lacks_a_page_sleeps_until_it_is_back(rig_of: MakeRig) -> None:
    rig = rig_of(9, lead_cap=0.45, reserve=0.05)
    speaking(rig, "ab")
    lacking(rig, "a", 1.0)
    row(rig, "a").parked, row(rig, "a").codec_pending = True, 0
    rig.scheduler.cancel("b", rig.now)
    back = resume_at(row(rig, "a"), rig.scheduler.config)
    assert may_preempt_at(row(rig, "a")) < back, "it has little lead"
    assert rig.plan() is None and rig.scheduler.next_wake(rig.now) == back
    rig.now = back
    assert rig.plan() is not None


def test_the_listener_with_the_most_lead_gives_way(rig_of: MakeRig) -> None:
    rig = rig_of(12)
    speaking(rig, "abc")
    lacking(rig, "a", 0.1)
    lead(rig, "b", 1.2)
    lead(rig, "c", 1.9)
    plan = rig.plan()
    assert [out.id for out in plan.swap_outs] == ["c"]
    assert {decode.id for decode in plan.decodes} == {"a", "b"}


def test_files_that_fill_the_memory_leave_the_engine_no_second_idle(rig_of: MakeRig) -> None:
    rig = rig_of(90, max_frames=740)
    for id in "ab":
        rig.open(id, 100, finish=True, frames=740, lead_cap=600.0)
    while len(rig.ended) < 2:
        rig.steps(1)
    assert rig.now == pytest.approx(100.0 + len(rig.plans) * 0.01)
    assert sum(len(plan.swap_outs) for plan in rig.plans) == 1


def test_a_listener_with_plenty_to_hear_gives_no_page_to_a_file(rig_of: MakeRig) -> None:
    rig = rig_of(9)
    all_lacking(rig, a=2.6, b=60.0)
    assert rig.plan() is None
    rig.now = rig.scheduler.next_wake(rig.now)
    assert [out.id for out in rig.plan().swap_outs] == ["b"]


def test_who_waits_for_text_gives_way_first(rig_of: MakeRig) -> None:
    rig = rig_of(12)
    rig.open("h", 2, prompt_tokens=12, layout=Layout.STREAMING)
    speaking(rig, "ac")
    lacking(rig, "a", 0.1)
    lead(rig, "h", 0.05)
    lead(rig, "c", 2.5)
    assert [out.id for out in rig.plan().swap_outs] == ["h"]


def test_equally_urgent_rows_do_not_swap_each_other_out_for_ever(rig_of: MakeRig) -> None:
    """Memory for one and a half of two turns, and a machine that is just fast enough."""
    rig = rig_of(6, step_seconds=0.03)
    for id in "ab":
        rig.open(id, 5, finish=True, frames=60, prompt_tokens=12)
    plans: list[StepPlan] = []
    while len(rig.ended) < 2:
        plans += rig.steps(1)
    swaps = sum(len(plan.swap_outs) for plan in plans)
    assert 1 <= swaps <= 4
    assert sorted(rig.ended) == ["a", "b"]


def test_a_swapped_row_is_back_before_its_deadline_when_there_is_room(rig_of: MakeRig) -> None:
    rig = rig_of(6, step_seconds=0.02)
    for id in "ab":
        rig.open(id, 5, finish=True, frames=60, prompt_tokens=12)
    while len(rig.ended) < 2:
        rig.steps(1)
    plans = rig.plans
    assert any(plan.swap_ins for plan in plans)
    assert rig.underruns == {"a": 0, "b": 0}


def test_swaps_teach_the_cost_model_nothing(rig_of: MakeRig) -> None:
    rig = rig_of(6, step_seconds=0.03)
    for id in "ab":
        rig.open(id, 5, finish=True, frames=60, prompt_tokens=12)
    swapped = 0
    while len(rig.ended) < 2:
        plan = rig.plan()
        learned = rig.scheduler.cost.costs
        if plan is not None and plan.swaps:
            swapped += 1
            rig.step(seconds=0.3)
            assert rig.scheduler.cost.costs == learned
        else:
            rig.steps(1)
    assert swapped


def test_a_turn_that_nobody_hears_yet_takes_no_listener_s_pages_at_once(rig_of: MakeRig) -> None:
    rig = rig_of(8)
    rig.open("a", 5)
    assert needs_memory_by(row(rig, "a")) == rig.now + MEMORY_AHEAD
    assert may_preempt_at(row(rig, "a")) == rig.now + MEMORY_AHEAD - PREEMPT_AHEAD


# Starts -----------------------------------------------------------------------------------------


def test_a_start_leaves_two_seconds_of_memory_to_those_on_air(rig_of: MakeRig) -> None:
    """a has one page and needs two more in two seconds; b takes one page now and another then."""
    for pages, started in ((4, {"a"}), (5, {"a", "b"})):
        rig = rig_of(pages, max_frames=50)
        rig.open("a", 300, prompt_tokens=4, layout=Layout.STREAMING)
        rig.step()
        rig.open("b", 300, prompt_tokens=4, layout=Layout.STREAMING)
        rig.steps(1)
        assert set(rig.frames) == started, pages


@pytest.mark.parametrize("frames", [10, 40, 55, 60])
def test_a_turn_that_another_engine_spoke_starts_wherever_it_fits_to_its_end(
    rig_of: MakeRig, frames: int
) -> None:
    """It needs no memory for frames beyond the most that a turn has."""
    rig = rig_of(5)  # 80 positions, for a prompt of 20 at most
    spoken, layout = Spoken(frames, frames * 1_920), Layout.STREAMING
    free_at = rig.now + 1.0
    rig.scheduler.open(
        "a", prompt_tokens=9, now=rig.now, layout=layout, listener_free_at=free_at, spoken=spoken
    )
    rig.scheduler.append("a", 80, rig.now)
    plan = rig.plan()
    assert plan is not None and [prefill.spoken for prefill in plan.prefills] == [frames]


def test_what_another_engine_spoke_of_turns_counts_before_they_start_here(
    rig_of: MakeRig,
) -> None:
    rig = rig_of(18, max_frames=120, kv_utilisation=0.9)
    rig.open("short", 3, finish=True, frames=8)
    rig.steps(8)  # from now on, turns are expected to be as short
    assert rig.ended == ["short"]
    answers = [
        rig.scheduler.open(
            id,
            prompt_tokens=20,
            now=rig.now,
            listener_free_at=rig.now,
            continues=True,
            spoken=Spoken(100, 100 * 1_920),  # 8 pages with its prompt, of 16 that may be taken
        )
        for id in ("one", "two")
    ]
    assert answers == [Admitted(), Queued()]


def test_what_another_engine_spoke_of_a_turn_says_nothing_about_the_memory_of_turns(
    rig_of: MakeRig,
) -> None:
    rig = rig_of(100, slots=64, kv_utilisation=0.9)
    before = rig.scheduler.capacity
    answer = rig.scheduler.open(
        "moved",
        prompt_tokens=200,
        now=rig.now,
        listener_free_at=rig.now,
        continues=True,
        spoken=Spoken(3, 3 * 1_920),
    )
    assert answer == Admitted()
    rig.scheduler.cancel("moved", rig.now)  # before it had a slot here
    assert rig.scheduler.capacity == before


def test_a_start_waits_for_rows_that_lack_memory_themselves(rig_of: MakeRig) -> None:
    rig = rig_of(12)
    rig.open("h", 2, prompt_tokens=12, layout=Layout.STREAMING)
    speaking(rig, "a")
    lacking(rig, "a", 2.0)
    rig.open("b", 5)
    plan = rig.plan()
    assert plan is None or not plan.prefills


def test_rows_that_wait_for_text_give_way_to_a_start_when_nobody_else_speaks(
    rig_of: MakeRig,
) -> None:
    rig = rig_of(6)
    rig.open("held", 2, prompt_tokens=30, layout=Layout.STREAMING)
    rig.steps(2)
    assert rig.plan() is None
    rig.open("b", 5, finish=True, prompt_tokens=20)
    plan = rig.step()
    assert [out.id for out in plan.swap_outs] == ["held"] and plan.prefills[0].id == "b"


# Admission --------------------------------------------------------------------------------------


def test_a_turn_is_not_admitted_without_memory_to_expect(rig_of: MakeRig) -> None:
    """Turns of ten seconds are expected, cut at the 60 frames that one may have: six pages."""
    rig = rig_of(13, kv_utilisation=1.0, max_queue=1, slots=8)
    answers = [rig.open(id, 4, prompt_tokens=20, finish=True, frames=30) for id in "abcd"]
    assert [type(answer) for answer in answers] == [Admitted, Admitted, Queued, Refused]
    refused = answers[-1]
    assert "memory" in refused.reason and refused.retry_after > 0
    while "a" not in rig.ended:
        rig.steps(1)
    assert row(rig, "c").phase.value != "queued" or rig.scheduler.active == 2


def test_a_lone_turn_is_admitted_whatever_is_expected(rig_of: MakeRig) -> None:
    rig = rig_of(5, kv_utilisation=0.01)
    assert isinstance(rig.open("a", 4), Admitted)


def test_a_turn_that_could_never_fit_is_refused_when_it_is_known(rig_of: MakeRig) -> None:
    rig = rig_of(8)
    with pytest.raises(DoesNotFit, match="143 positions; with 60 frames"):
        rig.open("a", prompt_tokens=140)
    assert rig.scheduler.active == rig.scheduler.queued == 0
    rig.open("b", 30, layout=Layout.FULL_TEXT)
    with pytest.raises(DoesNotFit, match="send less text"):
        rig.append("b", 60)
    rig.open("c", 100, finish=True)
    rig.scheduler.cancel("b", rig.now)
    plan = rig.steps(1)[0]
    assert plan.prefills[0].layout is Layout.STREAMING, "a text too long for a prompt is streamed"


def at(frames: int, prompt: int) -> Utterance:
    """A turn that has made so many frames, behind a prompt of so many positions."""
    found = Utterance("x", 0, prompt, Layout.STREAMING, 0.0, 3.0, None, Playback())
    found.frames, found.prompt_positions = frames, prompt
    return found


def test_the_peak_is_that_of_turns_as_long_as_usual() -> None:
    size = KVCacheSize(100, 1, 100, 50)  # pages of one position: exact
    assert peak_pages([at(0, 10)], 30, size) == 40
    # One is over after 10 frames, when the other has 20: 10 + 30 + 10 + 10; later that has 40.
    assert peak_pages([at(20, 10), at(0, 10)], 30, size) == 60
    brute = max(
        sum(p + f + t for f, p in ((20, 10), (0, 10), (5, 30)) if t <= 30 - f) for t in range(31)
    )
    assert peak_pages([at(20, 10), at(0, 10), at(5, 30)], 30, size) == brute


@pytest.mark.parametrize("pages", [60, 200, 1000])
def test_the_capacity_is_that_of_turns_in_memory_which_begin_one_after_another(
    make_rig: MakeRig, pages: int
) -> None:
    """Admission would take in so many of them, and not a fifth more."""
    rig = make_rig(slots=500, kv_cache=memory(pages, 200), step_seconds=0.0001)
    capacity, admission = rig.scheduler.capacity, rig.scheduler._admission
    assert capacity < rig.scheduler._admission.in_time()

    def fits(turns: int) -> bool:
        usual, prompt = admission._frames.mean, round(admission._prompt.mean)
        rows = [at(round(usual * number / turns), prompt) for number in range(turns)]
        size = rig.scheduler._requests.kv.size
        return bool(peak_pages(rows, usual, size) <= rig.scheduler.config.kv_utilisation * pages)

    assert fits(capacity) and not fits(max(capacity + 1, round(1.2 * capacity)))


def test_prompts_and_turns_that_are_longer_leave_memory_for_fewer(make_rig: MakeRig) -> None:
    rig = make_rig(slots=8, kv_cache=memory(40, 200), step_seconds=0.01)
    before = rig.scheduler.capacity
    rig.open("a", 60, finish=True, prompt_tokens=300, frames=190)
    while rig.scheduler.active:
        rig.steps(1)
    assert 1 <= rig.scheduler.capacity < before


def test_a_plan_says_all_of_it(rig_of: MakeRig) -> None:
    rig = rig_of(6)
    rig.open("held", 2, prompt_tokens=30, layout=Layout.STREAMING)
    rig.steps(2)
    rig.open("b", 5, finish=True, prompt_tokens=20)
    plan: StepPlan = rig.plan()
    assert plan.ids == {"held", "b"} and plan.swaps == 1
    assert plan.slots == {"held": 0, "b": 1}
