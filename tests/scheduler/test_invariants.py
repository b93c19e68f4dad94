"""Random lives of random utterances, checked after every single move."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from tts_scheduler import (
    Admitted,
    CostModel,
    DoesNotFit,
    KVCacheSize,
    Layout,
    Load,
    Playback,
    Queued,
    Scheduler,
    SchedulerConfig,
    Spoken,
    StepCosts,
    StepPlan,
    StepResult,
)
from tts_scheduler.admission import peak_pages
from tts_scheduler.playback import FRAME_SAMPLES, FRAME_SECONDS
from tts_scheduler.policy import POLICIES
from tts_scheduler.utterance import Utterance

COSTS = StepCosts(0.010, 0.004, 0.001, 0.010, 0.004, 0.0001)

MAX_FRAMES = 24
MOVES = 120
"""In each life: long enough that slots and pages are taken, given back and taken again."""


def config_of(random: Random) -> SchedulerConfig:
    return SchedulerConfig(
        slots=random.randint(1, 5),
        max_rows=random.choice([None, 1, 2]),
        max_prefills=random.randint(1, 3),
        lead_cap=random.choice([0.3, 0.5, 1.0, 3.0]),
        codec_chunks=random.choice([(1, 1, 2, 4), (1,), (2, 4), (4,)]),
        utilisation=random.choice([0.3, 0.7, 5.0]),
        max_queue=random.randint(0, 3),
        queue_timeout=random.choice([0.2, 2.0]),
        kv_utilisation=random.choice([0.5, 1.0, 100.0]),
    )


def memory_of(random: Random) -> KVCacheSize | None:
    """Of engines that hold one turn and a bit, up to all of them, and of one without a limit."""
    page_size = random.choice([8, 16])
    pages, without = random.randint(40, 160) // page_size, random.random() < 0.2
    return None if without else KVCacheSize(pages, page_size, pages * page_size, MAX_FRAMES)


def snapshot(scheduler: Scheduler) -> object:
    """Everything a plan could have changed."""

    def row(utterance: Utterance) -> tuple[object, ...]:
        own = [getattr(utterance, f.name) for f in fields(utterance) if f.name != "playback"]
        return (*own, *vars(utterance.playback).values())

    kv = scheduler._requests.kv
    return (
        [row(utterance) for utterance in scheduler._requests.utterances.values()],
        list(scheduler._requests.waiting),
        list(scheduler._requests.speaking),
        [utterance.id for utterance in scheduler._requests.queue],
        list(scheduler._requests.free_slots),
        [list(table) for table in kv._tables] if kv else [],
        list(kv.free) if kv else [],
        scheduler.cost.costs,
        scheduler.cost.spread,
        scheduler.capacity,
    )


@dataclass
class Known:
    """What the test itself knows about an utterance."""

    silent_start: int = 0
    text: int = 0
    finished: bool = False
    frames: int = 0
    pending: int = 0
    slot: int | None = None
    prompt: int = 0
    pages: list[int] = field(default_factory=list)
    swapped: bool = False


class World:
    """What a caller of the scheduler knows, and what it does: everything is drawn from `random`."""

    def __init__(self, random: Random) -> None:
        self.random = random
        cost = CostModel(COSTS)
        for rows in (1, 2, 5) * 20:
            cost.observe(Load(0, 0, rows, rows), COSTS.seconds(Load(0, 0, rows, rows)))
        self.config, self.memory = config_of(random), memory_of(random)
        self.scheduler = Scheduler(self.config, cost, random.choice(POLICIES), self.memory)
        self.now = 50.0
        self.live: dict[str, Known] = {}
        self.opened = 0
        self.ends: Counter[str] = Counter()

    def move(self) -> None:
        moves = {
            self.step: 9,
            self.open: 3,
            self.take_over: 1,
            self.let_time_pass: 1,
            self.sleep_until_the_alarm: 2,
            self.fail_in_a_step: 0.2,
        }
        if self.live:
            moves |= {self.write: 6, self.cancel: 0.5, self.report: 1}
        (chosen,) = self.random.choices(list(moves), list(moves.values()))
        chosen()

    # Moves --------------------------------------------------------------------------------------

    def open(self) -> None:
        draw, id = self.random.choice, self._new_id()
        listener, silent_start = draw([None, -1.0, 0.5, 4.0]), draw([0, 0, 2])
        try:
            answer = self.scheduler.open(
                id,
                prompt_tokens=20,
                now=self.now,
                layout=draw(list(Layout)),
                listener_free_at=None if listener is None else self.now + listener,
                lead_cap=draw([None, 0.1, 0.8]),
                silent_start=silent_start,
            )
        except DoesNotFit:
            assert self.memory is not None
            assert 20 + 1 + 2 + MAX_FRAMES > self.memory.row_positions
            self.ends[id] += 1
            return
        if not isinstance(answer, Admitted | Queued):
            self.ends[id] += 1
            return
        self._begin(id, Known(silent_start))

    def take_over(self) -> None:
        """Another engine has spoken part of it: it is queued rather than refused."""
        id, frames = self._new_id(), self.random.choice([1, 7, MAX_FRAMES - 1])
        try:
            answer = self.scheduler.open(
                id,
                prompt_tokens=20,
                now=self.now,
                listener_free_at=self.now + self.random.choice([-0.1, 0.5, 4.0]),
                continues=True,
                spoken=Spoken(frames, frames * FRAME_SAMPLES),
            )
        except DoesNotFit:
            self.ends[id] += 1
            return
        assert isinstance(answer, Admitted | Queued)
        self._begin(id, Known(frames=frames))

    def write(self) -> None:
        id = self._somebody()
        if not self.live[id].finished:
            if self._append(id, self.random.randint(1, 5)) and self.random.random() < 0.3:
                self._finish(id)

    def cancel(self) -> None:
        self._cancel(self._somebody())

    def report(self) -> None:
        """A listener whose clock runs a little fast."""
        id = self._somebody()
        playback = self.scheduler._requests.utterances[id].playback
        heard = playback.sent_seconds - playback.lead(self.now)
        ahead = self.random.uniform(0.0, 0.3)
        self.scheduler.played(id, max(0.0, heard) + ahead, self.now)

    def let_time_pass(self) -> None:
        self.now += self.random.random()
        self._expire()

    def sleep_until_the_alarm(self) -> None:
        self._expire()
        if self.scheduler.plan(self.now) is not None:
            assert self.scheduler.next_wake(self.now) == self.now
            return
        wake = self.scheduler.next_wake(self.now)
        if wake is None:
            return
        assert wake > self.now, "an alarm that rings at once and for nothing"
        early = self.now + self.random.uniform(0.0, 0.999) * (wake - self.now)
        if early < wake:
            assert self.scheduler.plan(early) is None, "overslept"
            assert not self._can_expire(early), "overslept"
        self.now = wake
        something = self.scheduler.plan(wake) is not None or self._can_expire(wake)
        assert something or self.memory is not None, "woken for nothing, and not for lack of pages"
        self._expire()

    def step(self) -> None:
        before = snapshot(self.scheduler)
        plan = self.scheduler.plan(self.now)
        self.scheduler.next_wake(self.now)
        assert self.scheduler.plan(self.now) == plan, "the same question, another answer"
        assert snapshot(self.scheduler) == before, "plan() changed something"
        if plan is None:
            return
        self._check(plan)
        making = [p.id for p in plan.prefills] + [d.id for d in plan.decodes]
        for id in making:
            self.live[id].frames += 1
            self.live[id].pending += 1
        over = [
            id
            for id in making
            if self.live[id].frames == MAX_FRAMES
            or (self.live[id].finished and self.random.random() < 0.1)
        ]
        pace = self.random.uniform(0.5, 4.0)
        result = self._result(plan, making, over, pace * COSTS.seconds(Load.of(plan)))
        self._do_something_meanwhile()
        self.now += result.seconds
        self.scheduler.commit(plan, result, self.now)
        for id in over:
            if id in self.live:
                self._over(id)
        self._check_leads()

    def fail_in_a_step(self) -> None:
        """The engine raises: every row of the plan is over, and has made nothing."""
        plan = self.scheduler.plan(self.now)
        if plan is None:
            return
        self._check(plan)
        self._do_something_meanwhile()
        self.scheduler.commit(plan, StepResult(0.001, ended=plan.ids), self.now)
        for id in sorted(plan.ids & self.live.keys()):
            self._over(id)

    def _do_something_meanwhile(self) -> None:
        """What comes while the engine makes the step, and is handed over before its commit."""
        (chosen,) = self.random.choices(
            [None, self.cancel, self.write, self.open], [0.6, 0.1, 0.2, 0.1]
        )
        if chosen is not None and self.live:
            chosen()

    # What must hold -----------------------------------------------------------------------------

    def _check(self, plan: StepPlan) -> None:
        config = self.config
        assert len(plan.decodes) <= config.rows_per_step
        assert config.max_prefills is not None and len(plan.prefills) <= config.max_prefills
        assert plan.ids <= set(self.live), "a plan names somebody who is over"
        slots = list(plan.slots.values())
        assert len(set(slots)) == len(slots) and set(slots) <= set(range(config.slots))
        for prefill in plan.prefills:
            known = self.live[prefill.id]
            assert known.slot is None and known.text > 0
            assert prefill.slot not in {k.slot for k in self.live.values()}, "a slot owned twice"
            full = prefill.layout is Layout.FULL_TEXT
            assert prefill.text_tokens == (known.text if full else 1)
            assert known.finished or not full
            has_text = known.finished or known.text > known.silent_start
            assert prefill.silent_start == (known.silent_start if has_text else 0)
            assert prefill.spoken == known.frames
            known.frames = prefill.frames
            known.slot = prefill.slot
        for decode in plan.decodes:
            known = self.live[decode.id]
            assert (decode.slot, decode.frame) == (known.slot, known.frames)
            assert known.finished or decode.frame < known.text, "a starved row in a plan"
        self._check_memory(plan)
        self._check_codec(plan)

    def _check_memory(self, plan: StepPlan) -> None:
        """The engine's block tables, as plans say them: pages have one owner, rows in a plan have
        them all, and what was swapped out is swapped in whole."""
        if self.memory is None:
            assert not (plan.reservations or plan.swaps)
            return
        for out in plan.swap_outs:
            known = self.live[out.id]
            assert known.pages and not known.swapped and out.slot == known.slot
            known.pages, known.swapped = [], True
        back = {each.id for each in plan.swap_ins}
        for each in plan.reservations:
            known = self.live[each.id]
            assert each.slot == known.slot and each.first == len(known.pages) and each.pages
            assert known.swapped == (each.id in back)
            known.pages += each.pages
            known.swapped = False
        owned = [page for known in self.live.values() for page in known.pages]
        assert len(set(owned)) == len(owned), "a page has two owners"
        assert set(owned) <= set(range(1, self.memory.pages + 1)), "pages that there are not"
        for prefill in plan.prefills:
            self.live[prefill.id].prompt = prefill.prompt_tokens + prefill.text_tokens + 2
        for id in [p.id for p in plan.prefills] + [d.id for d in plan.decodes]:
            known = self.live[id]
            room = len(known.pages) * self.memory.page_size
            assert not known.swapped and known.prompt + known.frames <= room, f"{id} has no page"
            assert known.prompt + MAX_FRAMES <= self.memory.row_positions
        for id in back:
            known = self.live[id]
            room = len(known.pages) * self.memory.page_size
            assert known.prompt + known.frames <= room, f"{id} came back without all its pages"

    def _check_codec(self, plan: StepPlan) -> None:
        # One more where a frame that might have waited for the next run no longer can.
        most = max(2, self.config.codec_chunks[-1]) + 1
        making = {p.id for p in plan.prefills} | {d.id for d in plan.decodes}
        runs = {run.id: run.frames for run in plan.codec}
        assert len(runs) == len(plan.codec)
        for id, frames in runs.items():
            pending = self.live[id].pending + (id in making)
            assert 1 <= frames <= pending
            assert frames <= most
        for id in making:
            known = self.live[id]
            if not known.finished and known.frames + 1 >= known.text:
                assert runs[id] == known.pending + 1, "held with sound left to give"

    def _check_leads(self) -> None:
        run = max(2, self.config.codec_chunks[-1]) * FRAME_SECONDS
        for id, row in self.scheduler._requests.speaking.items():
            busy = (row.listener_free_at or 0.0) - self.now  # the turn before counts as lead too
            limit = max(row.lead_cap, busy) + run
            assert row.playback.lead(self.now) <= limit + 1e-9, f"{id} is too far ahead"

    def every_utterance_ends_at_most_once_and_nobody_is_lost(self) -> None:
        assert all(times == 1 for times in self.ends.values())
        assert set(self.live) == set(self.scheduler._requests.utterances)
        assert len(self.live) == self.scheduler.active + self.scheduler.queued
        assert self.opened == len(self.live) + len(self.ends)
        assert dict(self.scheduler._requests.accounts) == (
            {"": len(self.live)} if self.live else {}
        )

    def every_slot_has_one_owner_or_none(self) -> None:
        owned = [row.slot for row in self.scheduler._requests.speaking.values()]
        assert sorted(owned + self.scheduler._requests.free_slots) == list(range(self.config.slots))
        assert sorted(owned) == sorted(k.slot for k in self.live.values() if k.slot is not None)

    def admitted_turns_fit_the_slots_and_the_queue_its_length(self) -> None:
        assert self.scheduler.active <= self.config.slots
        queue, admission = self.scheduler._requests.queue, self.scheduler._admission
        assert sum(not row.continues for row in queue) <= self.config.queue_length
        if not queue or self.scheduler.active >= admission.in_time():
            return
        first = queue[0]
        assert admission._memory_is_full or not admission.has_memory(first)

    def what_turns_hold_at_most_is_no_less_than_their_peak(self) -> None:
        if self.memory is None:
            return
        admission, requests = self.scheduler._admission, self.scheduler._requests
        assert requests.kv is not None
        new = Utterance("new", 0, 20, Layout.STREAMING, 0.0, 3.0, None, Playback())
        rows = (new, *requests.waiting.values(), *requests.speaking.values())
        usual = min(admission._frames.mean, requests.kv.size.max_frames)
        peak = peak_pages(rows, usual, requests.kv.size)
        assert admission.pages_at_most(new, usual) >= peak

    def every_page_is_free_or_known_to_be_somebodys(self) -> None:
        if self.memory is None:
            return
        kv = self.scheduler._requests.kv
        assert kv is not None
        owned = [page for known in self.live.values() for page in known.pages]
        assert sorted([*owned, *kv.free]) == list(range(1, self.memory.pages + 1))

    def end_everybody(self) -> None:
        """Whoever is left can be ended, and then nothing is left of anybody."""
        for id in sorted(self.live):
            self._cancel(id)
        assert sorted(self.ends) == sorted(f"u{i}" for i in range(self.opened))
        assert all(times == 1 for times in self.ends.values())
        assert self.scheduler._requests.free_slots == list(range(self.config.slots))
        kv = self.scheduler._requests.kv
        assert kv is None or len(kv.free) == kv.size.pages
        assert self.scheduler.plan(self.now) is None
        assert self.scheduler.next_wake(self.now) is None

    # Helpers ------------------------------------------------------------------------------------

    def _new_id(self) -> str:
        self.opened += 1
        return f"u{self.opened - 1}"

    def _somebody(self) -> str:
        return self.random.choice(sorted(self.live))

    def _begin(self, id: str, known: Known) -> None:
        self.live[id] = known
        if self._append(id, self.random.randint(0, 6)) and self.random.random() < 0.5:
            self._finish(id)

    def _append(self, id: str, text: int) -> bool:
        """False: so much text can never be spoken, and the utterance is over."""
        try:
            self.scheduler.append(id, text, self.now)
        except DoesNotFit:
            assert self.memory is not None
            needed = 20 + self.live[id].text + text + 2 + MAX_FRAMES
            assert needed > self.memory.row_positions
            self._cancel(id)
            return False
        self.live[id].text += text
        return True

    def _finish(self, id: str) -> None:
        speaks = self.scheduler.finish(id, self.now)
        self.live[id].finished = True
        assert speaks is (self.live[id].text > 0)
        if not speaks:
            self._over(id)

    def _cancel(self, id: str) -> None:
        assert self.scheduler.cancel(id, self.now) is True
        assert self.scheduler.cancel(id, self.now) is False
        self._over(id)

    def _over(self, id: str) -> None:
        del self.live[id]
        self.ends[id] += 1

    def _can_expire(self, now: float) -> bool:
        first = self.scheduler._requests.first_new
        return first is not None and first.opened_at + self.config.queue_timeout <= now

    def _expire(self) -> None:
        expired = self.scheduler.expire(self.now)
        assert self.scheduler.expire(self.now) == ()
        for id in expired:
            self._over(id)

    def _result(
        self, plan: StepPlan, making: list[str], over: list[str], seconds: float
    ) -> StepResult:
        runs = {run.id: run.frames for run in plan.codec}
        runs.update((id, self.live[id].pending) for id in over)
        for id, frames in runs.items():
            self.live[id].pending -= frames
        samples = {id: frames * FRAME_SAMPLES for id, frames in runs.items()}
        return StepResult(seconds, frozenset(making), samples, frozenset(over))


@examples(160)
@given(seed=st.integers(0, 2**64))
def test_what_must_hold_holds_after_every_move(seed: int) -> None:
    world = World(Random(seed))
    for _ in range(MOVES):
        world.move()
        world.every_utterance_ends_at_most_once_and_nobody_is_lost()
        world.every_slot_has_one_owner_or_none()
        world.admitted_turns_fit_the_slots_and_the_queue_its_length()
        world.what_turns_hold_at_most_is_no_less_than_their_peak()
        world.every_page_is_free_or_known_to_be_somebodys()
    world.end_everybody()


def test_a_plan_is_a_value() -> None:
    scheduler = Scheduler(SchedulerConfig())
    scheduler.open("a", prompt_tokens=1, now=0.0)
    scheduler.append("a", 5, 0.0)
    plan = scheduler.plan(0.0)
    assert plan is not None
    with pytest.raises(AttributeError):
        plan.decodes = ()  # type: ignore[misc]
