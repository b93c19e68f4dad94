"""Scheduler: the state of all utterances and the changes to it.

Call it with what happens (open, append, finish, cancel, a step that is done), and ask it what to do
next. Seconds are floats on one clock of the caller, which never runs backwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from tts_scheduler.admission import Admission, AdmissionControl, Admitted, Queued
from tts_scheduler.config import SchedulerConfig
from tts_scheduler.cost import CostModel, Load
from tts_scheduler.kv_cache import KVCacheManager, KVCacheSize
from tts_scheduler.plan import Layout, Prefill, StepPlan, StepResult, prompt_positions
from tts_scheduler.planner import Planner
from tts_scheduler.playback import FRAME_SAMPLES, Playback
from tts_scheduler.policy import DEADLINE_ORDER, Policy, back_at, is_ahead, start_at
from tts_scheduler.request_table import RequestTable
from tts_scheduler.utterance import Phase, Spoken, Stats, Utterance


class Scheduler:
    """Shares one engine among many listeners. `kv_cache`: the engine's memory for keys and values,
    which is assigned by the page; None: it has no limit.

    The caller's loop: hand over what came in, `expire`, `plan`; with a plan, do the step and
    `commit` it, or `book` it, publish its results, and `learn`; without one, sleep until
    `next_wake` or until something comes in. An id names one utterance, once. An utterance ends by
    `cancel`, by `expire`, by `finish` without any text or by a step result that says so; later
    calls for it are ignored.
    """

    def __init__(
        self,
        config: SchedulerConfig,
        cost: CostModel | None = None,
        policy: Policy = DEADLINE_ORDER,
        kv_cache: KVCacheSize | None = None,
    ) -> None:
        self.config = config
        self.cost = CostModel() if cost is None else cost
        kv = None if kv_cache is None else KVCacheManager(config.slots, kv_cache)
        self._planner = Planner(config, self.cost, policy, kv)
        self._requests = RequestTable(config.slots, kv)
        self._admission = AdmissionControl(config, self._requests, self.cost)
        self._opened = 0
        self._steps = 0

    # What comes in --------------------------------------------------------------------------

    def open(
        self,
        id: str,
        *,
        prompt_tokens: int,
        now: float,
        layout: Layout = Layout.AUTO,
        listener_free_at: float | None = None,
        lead_cap: float | None = None,
        text_needed: int = 1,
        silent_start: int = 0,
        continues: bool = False,
        spoken: Spoken | None = None,
        speed: float = 1.0,
        lookahead: int = 0,
        payer: tuple[str, float] = ("", 1.0),
    ) -> Admission:
        """Take a new utterance, described as in `Utterance`. A refused one is not recorded.

        `lead_cap` replaces the config's; the reserve is the least cap. `spoken`: by another engine;
        `listener_free_at` is then when the listener will have heard that. `lookahead`: samples held
        back until more come (`Playback`). `payer`: account and share. Raises ValueError for an id
        in use, DoesNotFit for a prompt beyond all memory."""
        if id in self._requests.utterances:
            raise ValueError(f"utterance {id!r} is open already: an id names one utterance")
        self._requests.check_memory(prompt_positions(prompt_tokens, 1))
        self._opened += 1
        row = Utterance(
            id=id,
            order=self._opened,
            prompt_tokens=prompt_tokens,
            layout=layout,
            opened_at=now,
            lead_cap=self.config.lead_cap_of(lead_cap),
            listener_free_at=listener_free_at,
            playback=Playback.at_speed(speed, listener_free_at, lookahead),
            text_needed=text_needed,
            silent_start=silent_start,
            continues=continues,
            speed=speed,
            account=payer[0],
            share=payer[1],
        )
        if spoken is not None:
            row.resume(spoken, now)
        return self._admit(row, now)

    def _admit(self, row: Utterance, now: float) -> Admission:
        """Decide about a new utterance, and record it unless it is refused."""
        admission = self._admission.decide(row)
        if isinstance(admission, Queued):
            self._requests.enqueue(row)
        elif isinstance(admission, Admitted):
            self._requests.admit(row, now)
        return admission

    def append(self, id: str, text_tokens: int, now: float) -> None:
        """Add text. Raises ValueError after `finish` and for a negative count, DoesNotFit for
        prompt text that is too much for the engine's memory."""
        row = self._requests.utterances.get(id)
        if row is None or text_tokens == 0:
            return
        if row.finished or text_tokens < 0:
            what = "after its text was finished" if row.finished else "less than nothing"
            raise ValueError(f"{text_tokens} text tokens for utterance {id!r}: {what}")
        if row.layout is Layout.FULL_TEXT:
            self._requests.check_memory(row.full_positions + text_tokens)
        row.receive(text_tokens, now)

    def finish(self, id: str, now: float) -> bool:
        """End the text. Returns False if there is nothing to speak, so the utterance is over."""
        row = self._requests.utterances.get(id)
        if row is None:
            return False
        row.finished = True
        if row.layout is Layout.AUTO and not self._requests.fits(row.full_positions):
            row.layout = Layout.STREAMING  # a token per frame, and not all of them in the prompt
        row.receive(0, now)
        if row.received == 0:
            self._end(row, now)
            self._promote(now)
            return False
        return True

    def cancel(self, id: str, now: float) -> bool:
        """End it now; its slot is free at the next plan. Returns False if it was over already."""
        row = self._requests.utterances.get(id)
        if row is None:
            return False
        self._end(row, now)
        self._promote(now)
        return True

    def played(self, id: str, seconds: float, now: float) -> None:
        """Record that the listener has played `seconds` of this utterance."""
        row = self._requests.utterances.get(id)
        if row is not None:
            row.playback.played(seconds, now)
            row.parked = row.phase is Phase.SPEAKING and is_ahead(row, now)

    def set_lead_cap(self, id: str, seconds: float, now: float) -> None:
        """Set how many seconds of unplayed audio are enough for this listener from now on.

        A client that saves a file takes audio faster than it plays. A cap that grows with what it
        took lets it have all that the machine can make. Its playback deadlines are far away, so
        listeners go first.
        """
        row = self._requests.utterances.get(id)
        if row is not None:
            row.lead_cap = self.config.lead_cap_of(seconds)
            row.parked = row.phase is Phase.SPEAKING and is_ahead(row, now)

    def expire(self, now: float) -> tuple[str, ...]:
        """Forget utterances that are over. End those that queued for too long, and those that leave
        a full queue to an account with fewer; return their ids: the caller tells their clients."""
        self._requests.forget()
        expired = []
        while (row := self._admission.crowded_out()) is not None:
            expired.append(row.id)
            self._end(row, now)
        while (row := self._requests.first_new) is not None and self._ends_at(row) <= now:
            expired.append(row.id)
            self._end(row, now)
        if expired:
            self._promote(now)  # the next one may need less memory
        return tuple(expired)

    # The step -------------------------------------------------------------------------------

    def plan(self, now: float) -> StepPlan | None:
        """Return what the next step should do, or None for nothing. Changes no state."""
        requests = self._requests
        speaking, waiting = requests.speaking.values(), requests.waiting.values()
        return self._planner.plan(speaking, waiting, requests.free_slots, now)

    def commit(self, plan: StepPlan, result: StepResult, now: float) -> list[str]:
        """Record a step that was done: `book` it, then `learn` from it. Returns `book`'s result."""
        held = self.book(plan, result, now)
        self.learn(plan, result.seconds, now)
        return held

    def book(self, plan: StepPlan, result: StepResult, now: float) -> list[str]:
        """Record what the step made, except for utterances that ended in the meantime.

        Returns the ids of those that have now used up their text.
        """
        requests = self._requests
        self._steps += 1
        for prefill in plan.prefills:
            self._start(prefill, result)
        requests.move_pages(plan)
        self._count(plan, result)
        for id, count in result.samples.items():
            self._deliver(id, count, id in result.ended, result.seconds, now)
        for id in sorted(result.ended):  # in an order that does not depend on hashing
            ended = requests.utterances.get(id)
            if ended is not None:
                self._end(ended, now)
        ids = [work.id for work in plan.decodes] + [work.id for work in plan.prefills]
        return self._settle(ids, now)

    def learn(self, plan: StepPlan, seconds: float | None, now: float) -> None:
        """Learn from how long the step took, and admit turns that fit now. Call it after `book`,
        when the results are published. `seconds` None: it failed, so its time says nothing."""
        if seconds is not None and not (plan.swaps or plan.resumes):  # whose share is unknown
            self.cost.observe(Load.of(plan), seconds)
        self._promote(now)

    def next_wake(self, now: float) -> float | None:
        """Return when to plan (or expire) again if nothing comes in until then; None for never."""
        if self.plan(now) is not None:
            return now
        times = [start_at(row, self.config) for row in self._requests.waiting.values()]
        for row in self._requests.speaking.values():
            if row.can_go_on:
                times += back_at(row, self.config)
        wake = min((at for at in times if at > now), default=inf)
        if (queued := self._requests.first_new) is not None:
            wake = min(wake, max(now, self._ends_at(queued)))
        return None if wake == inf else wake

    # State ----------------------------------------------------------------------------------

    def stats(self, id: str, now: float | None = None) -> Stats:
        """Return a snapshot of an utterance; a hold that is not over counts up to `now`.

        An utterance that is over is known until the next `expire`. Raises KeyError for others.
        """
        return self._requests.stats(id, now)

    def held_seconds(self, id: str, now: float) -> float:
        """Return `stats(id, now).held_seconds` alone: every packet asks for it. Raises KeyError."""
        return self._requests.held_seconds(id, now)

    @property
    def active(self) -> int:
        """Number of admitted utterances that are not over."""
        return self._requests.active

    @property
    def held(self) -> int:
        """Number of speaking utterances that wait for text."""
        return sum(not row.can_go_on for row in self._requests.speaking.values())

    @property
    def queued(self) -> int:
        """Number of utterances that wait for capacity."""
        return len(self._requests.queue)

    @property
    def pages_used(self) -> int:
        """Number of KV cache pages that rows have; 0 where the cache has no limit."""
        kv = self._requests.kv
        return 0 if kv is None else kv.size.pages - len(kv.free)

    @property
    def capacity(self) -> int:
        """How many utterances can be active at once, by the learned step times and memory: for
        choosing between machines. Admission looks at the memory itself."""
        return self._admission.capacity

    # Moves ----------------------------------------------------------------------------------

    def _ends_at(self, queued: Utterance) -> float:
        return queued.opened_at + self.config.queue_timeout

    def _promote(self, now: float) -> None:
        """Admit utterances from the queue while there is capacity."""
        while (row := self._admission.next()) is not None:
            self._requests.admit(row, now)

    def _start(self, prefill: Prefill, result: StepResult) -> None:
        row = self._requests.waiting.get(prefill.id)
        if row is None or prefill.id not in result.frames:
            return
        self._requests.begin(row, prefill)
        row.layout, row.served = prefill.layout, self._steps
        row.frames, row.codec_pending = prefill.frames + 1, 1

    def _count(self, plan: StepPlan, result: StepResult) -> None:
        """Count the frames that were made, and those that the codec has decoded."""
        speaking, samples = self._requests.speaking, result.samples
        decoded = samples if result.decoded is None else result.decoded
        for decode in plan.decodes:
            row = speaking.get(decode.id)
            if row is not None and decode.id in result.frames:
                row.frames += 1
                row.codec_pending += 1
                row.served = self._steps
        for run in plan.codec:
            row = speaking.get(run.id)
            if row is not None and run.id in decoded:
                ran = -(-decoded[run.id] // FRAME_SAMPLES)
                row.codec_pending -= min(ran, row.codec_pending)
                row.codec_runs += run.id in samples

    def _deliver(self, id: str, samples: int, last: bool, seconds: float, now: float) -> None:
        """Record samples that left the codec in the listener's `Playback`."""
        row = self._requests.speaking.get(id)
        if row is None:
            return
        deadline = row.playback.runs_out_at
        late = row.playback.feed(samples, now)
        if last:
            late += row.playback.end(now)
        if late > 0.0 and row.resumed_at is not None and deadline is not None:
            # Three steps: the one under way when the text came, and two for a packet's frames.
            row.starved_underruns += row.resumed_at + 3.0 * seconds > deadline

    def _settle(self, ids: Iterable[str], now: float) -> list[str]:
        """After a step, hold rows whose text is used up and park those that are far ahead."""
        speaking = self._requests.speaking
        held = []
        for id in ids:
            row = speaking.get(id)
            if row is not None:
                row.note_text(now)
                if row.held_since == now:
                    held.append(id)
                row.parked = is_ahead(row, now)
        return held

    def _end(self, row: Utterance, now: float) -> None:
        self._admission.note_end(row, now)
        self._requests.end(row, now)
