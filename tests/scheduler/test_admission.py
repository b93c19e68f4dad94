from collections import Counter
from collections.abc import Callable, Collection
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tts_scheduler import (
    Admitted,
    KVCacheSize,
    Queued,
    Refused,
    Scheduler,
    SchedulerConfig,
    StepCosts,
)
from tts_scheduler.admission import AdmissionControl, Turnover, admit
from tts_scheduler.shares import Shares
from tts_scheduler.utterance import Utterance

CONFIG = SchedulerConfig(slots=16, max_queue=2, queue_timeout=1.0)
MakeRig = Callable[..., Any]


def turnover(seconds: float) -> Turnover:
    turnover = Turnover(1.0)
    for _ in range(20):
        turnover.note(seconds)
    return turnover


def test_below_capacity_a_turn_is_admitted() -> None:
    assert admit(3, 0, 4, turnover(4.0), CONFIG) == Admitted()


def test_nobody_overtakes_the_queue() -> None:
    assert isinstance(admit(3, 1, 4, turnover(1.0), CONFIG), Queued)


def test_at_capacity_a_turn_waits_if_the_wait_is_short() -> None:
    known = turnover(8.0)
    assert known.wait(0, 16) == 0.5  # one of sixteen turns of 8 s ends each half second
    assert admit(16, 0, 16, known, CONFIG) == Queued()
    assert known.wait(1, 16) == 1.0
    assert admit(16, 1, 16, known, CONFIG) == Queued()


def test_a_long_wait_is_refused_at_once() -> None:
    answer = admit(4, 0, 4, turnover(8.0), CONFIG)
    assert isinstance(answer, Refused)
    assert answer.retry_after == pytest.approx(2.0)
    assert answer.reason == "live turns: 4 of 4; none is expected to end in time"


def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    answer = admit(16, 2, 16, turnover(8.0), CONFIG)
    assert isinstance(answer, Refused)
    assert answer.retry_after == pytest.approx(1.5)
    assert answer.reason == "live turns: 16 of 16; waiting: 2"


def test_retry_after_is_never_silly() -> None:
    answer = admit(16, 2, 16, turnover(0.001), CONFIG)
    assert isinstance(answer, Refused)
    assert answer.retry_after == 0.25


def test_one_turn_that_took_a_night_does_not_send_others_away_for_long() -> None:
    known = turnover(8.0)
    known.note(8 * 3600.0)
    assert isinstance(admit(16, 0, 16, known, CONFIG), Queued)
    assert 8.0 < known.wait(0, 1) < 12.0


def test_turns_that_became_longer_are_believed() -> None:
    known = turnover(0.1)
    for _ in range(100):
        known.note(60.0)
    assert known.wait(0, 1) > 50.0


def test_before_any_turn_has_ended_a_turn_may_wait() -> None:
    assert isinstance(admit(1, 0, 1, Turnover(CONFIG.queue_timeout), CONFIG), Queued)


def test_before_any_turn_has_ended_a_patient_queue_takes_as_many_as_it_may(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(slots=5, max_queue=64, queue_timeout=3000.0)
    answers = [rig.open(str(i), 5) for i in range(70)]
    assert [type(answer) for answer in answers] == [Admitted] * 5 + [Queued] * 64 + [Refused]
    assert answers[69].retry_after < 300.0  # the wait behind 64 others


def test_capacity_comes_from_measured_steps_not_from_slots(make_rig: MakeRig) -> None:
    costs = StepCosts(0.020, 0.006, 0.002, 0.0, 0.0, 0.0)  # 56 ms hold 4 rows
    rig = make_rig(costs=costs, slots=16, utilisation=0.7, max_queue=0)
    assert rig.scheduler.capacity == 4
    answers = [rig.open(str(i), 5) for i in range(6)]
    assert [type(answer) for answer in answers] == [Admitted] * 4 + [Refused] * 2


def test_slots_bound_capacity(make_rig: MakeRig) -> None:
    rig = make_rig(slots=3, max_queue=0)
    answers = [rig.open(str(i), 5) for i in range(4)]
    assert [type(answer) for answer in answers] == [Admitted] * 3 + [Refused]


def test_parked_and_held_turns_do_not_widen_admission(make_rig: MakeRig) -> None:
    rig = make_rig(slots=2, max_queue=0, lead_cap=1.0)
    rig.open("parked", 100, finish=True)
    rig.open("held", 3)
    while rig.step() is not None:
        pass
    assert rig.scheduler.held == 1
    assert rig.scheduler.active == 2
    assert isinstance(rig.open("third", 5), Refused)


def test_a_refused_turn_leaves_nothing_behind(make_rig: MakeRig) -> None:
    rig = make_rig(slots=1, max_queue=0)
    rig.open("on", 5)
    assert isinstance(rig.open("refused", 5), Refused)
    assert not rig.scheduler.cancel("refused", rig.now)
    with pytest.raises(KeyError):
        rig.scheduler.stats("refused")


def test_the_queue_moves_up_when_a_turn_ends(make_rig: MakeRig) -> None:
    rig = make_rig(slots=1)
    rig.open("on", 5)
    assert isinstance(rig.open("next", 5), Queued)
    rig.step()
    assert rig.plan().ids == {"on"}
    rig.scheduler.cancel("on", rig.now)
    assert rig.scheduler.queued == 0
    assert rig.plan().ids == {"next"}


def test_text_of_a_queued_turn_is_not_lost(make_rig: MakeRig) -> None:
    rig = make_rig(slots=1)
    rig.open("on", 5)
    rig.open("next", 5)
    rig.append("next", 7)
    rig.finish("next")
    rig.scheduler.cancel("on", rig.now)
    assert rig.plan().prefills[0].text_tokens == 12


def test_a_turn_that_queues_too_long_ends_once_and_is_told(make_rig: MakeRig) -> None:
    rig = make_rig(slots=1, queue_timeout=0.5)
    rig.open("on", 5)
    rig.now += 0.1
    rig.open("late", 5)
    assert rig.scheduler.expire(rig.now + 0.49) == ()
    assert rig.scheduler.next_wake(rig.now) == pytest.approx(rig.now)  # "on" has work to do
    assert rig.scheduler.expire(rig.now + 0.5) == ("late",)
    assert rig.scheduler.expire(rig.now + 9.9) == ()
    assert not rig.scheduler.cancel("late", rig.now + 9.9)


def test_a_turn_that_waits_too_long_for_memory_leaves_room_for_a_smaller_one(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(slots=4, queue_timeout=2.0, kv_cache=KVCacheSize(29, 16, 300, 50))
    for id in ("on", "too"):  # both will wait for text for ever
        rig.open(id, 3)
    while rig.scheduler.held < 2 or rig.plan():
        rig.steps(1)
    assert isinstance(rig.open("long", 3, prompt_tokens=240), Queued)
    rig.now += 1.0
    assert isinstance(rig.open("short", 3), Queued)
    rig.now += 1.0
    assert rig.scheduler.expire(rig.now) == ("long",)
    assert rig.scheduler.stats("short").phase == "waiting"


def test_a_turn_that_goes_on_is_before_all_new_ones_and_is_never_sent_away(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(slots=1, max_queue=1, queue_timeout=2.0)
    scheduler = rig.scheduler
    assert scheduler.open("first", prompt_tokens=9, now=0.0) == Admitted()
    assert isinstance(scheduler.open("new", prompt_tokens=9, now=0.0), Queued)
    for id in ("goes on", "goes on too"):
        assert isinstance(scheduler.open(id, prompt_tokens=9, now=0.1, continues=True), Queued)
    assert isinstance(scheduler.open("more", prompt_tokens=9, now=0.1), Refused)
    assert scheduler.expire(5.0) == ("new",)
    assert scheduler.next_wake(5.0) is None
    scheduler.cancel("first", 5.0)
    assert scheduler.stats("goes on").phase == "waiting"
    assert scheduler.stats("goes on too").phase == "queued"


def test_turns_that_are_played_faster_count_as_the_frames_they_need(make_rig: MakeRig) -> None:
    rig = make_rig(slots=7, max_queue=64, queue_timeout=3000.0)
    assert rig.open("plain", 5) == Admitted()
    answers = [rig.open(str(i), 5, speed=1.4) for i in range(5)]
    # 1 + 4 * 1.4 = 6.6, and a fifth would make it 8.
    assert [isinstance(answer, Admitted) for answer in answers] == [True] * 4 + [False]
    for id in ("plain", "0"):
        rig.scheduler.cancel(id, rig.now)
    assert rig.scheduler.active == 4 and rig.scheduler.queued == 0
    for id in ("1", "2", "3", "4"):
        rig.scheduler.cancel(id, rig.now)
    slow = [rig.open(f"slow-{i}", 5, speed=0.7) for i in range(8)]
    assert [isinstance(answer, Admitted) for answer in slow] == [True] * 7 + [False]


@pytest.mark.parametrize(
    "speeds, admitted", [((1.4,), 1), ((1.1,), 5), ((1.0, 1.4), 6), ((1.4, 1.0), 1)]
)
def test_turns_that_are_played_faster_need_more_steps_and_get_them(
    make_rig: MakeRig, speeds: tuple[float, ...], admitted: int
) -> None:
    """A step of nine rows takes four fifths of a frame, which is all it may, and most of that is
    the same for any number of rows."""
    costs = StepCosts(0.05, 0.001, 0.0005, 0.0, 0.0, 0.0)
    rig = make_rig(costs=costs, slots=32, max_queue=1, queue_timeout=0.01)
    assert rig.scheduler.capacity == 9
    for number, speed in zip(range(12), cycle(speeds), strict=False):
        rig.open(str(number), 600, finish=True, frames=500, speed=speed)
        rig.scheduler.expire(rig.now + 0.01)
    assert rig.scheduler.active == admitted
    while rig.scheduler.active:
        rig.steps(1)
    assert not sum(rig.underruns.values())


@pytest.mark.parametrize("speed", [0.7, 1.0, 1.1, 1.4])
def test_the_capacity_that_is_told_is_free_only_while_another_turn_is_admitted(
    make_rig: MakeRig, speed: float
) -> None:
    rig = make_rig(slots=10, max_queue=64, queue_timeout=3000.0)
    for number in range(10):
        free = rig.scheduler.capacity - rig.scheduler.active
        answer = rig.open(f"plain-{number}", 5)
        assert isinstance(answer, Admitted) == (free > 0)
        rig.scheduler.cancel(f"plain-{number}", rig.now)
        rig.open(str(number), 5, speed=speed)
    for number in range(10):
        rig.scheduler.cancel(str(number), rig.now)
    assert rig.scheduler.capacity == 10


def test_a_fast_turn_alone_has_room_on_any_machine(make_rig: MakeRig) -> None:
    rig = make_rig(slots=1)
    assert rig.open("a", 5, speed=1.4) == Admitted()
    assert rig.scheduler.capacity == 1


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.booleans()), max_size=30))
def test_the_accounts_are_those_of_all_that_wait_or_are_live(
    steps: list[tuple[str, bool]],
) -> None:
    scheduler = Scheduler(SchedulerConfig(slots=2, max_queue=3, queue_timeout=100.0))
    requests, shares = scheduler._requests, scheduler._admission._shares

    class Seen(Shares):
        def note_end(self, row: Utterance, here: Collection[str]) -> None:
            others = [one for one in requests.utterances.values() if one is not row]
            assert set(here) == {other.account for other in others}
            super().note_end(row, here)

    shares.__class__ = Seen
    for number, (account, ends) in enumerate(steps):
        if ends and requests.utterances:
            scheduler.cancel(next(iter(requests.utterances)), now=1.0)
        else:
            scheduler.open(f"u{number}", prompt_tokens=9, now=1.0, payer=(account, 1.0))
        scheduler.expire(now=1.0)
        counted = Counter(row.account for row in requests.utterances.values())
        assert dict(requests.accounts) == dict(counted)


def test_memory_is_counted_only_where_turns_may_not_fit(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = 0

    def noted(control: AdmissionControl, row: Utterance, usual: float) -> int:
        nonlocal counted
        counted += 1
        return pages_at_most(control, row, usual)

    pages_at_most = AdmissionControl.pages_at_most
    monkeypatch.setattr(AdmissionControl, "pages_at_most", noted)
    room_for_two = KVCacheSize(pages=20, page_size=16, row_positions=160, max_frames=60)
    rig = make_rig(slots=4, kv_cache=room_for_two, kv_utilisation=1.0)
    for number in range(2):
        rig.open(f"u{number}")
    assert not counted
    rig.open("u2")
    assert counted == 1
