"""Scheduler: the state of all utterances and the moves that change it.

Give it what happens (open, append, finish, cancel, a step that is done), ask it what to do next.
Seconds are floats on one clock of the caller, which never runs backwards.
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
from tts_scheduler.playback import Playback
from tts_scheduler.policy import DEADLINE_ORDER, Policy, back_at, is_ahead, start_at
from tts_scheduler.request_table import RequestTable
from tts_scheduler.utterance import Phase, Spoken, Stats, Utterance


class Scheduler:
    """Shares one engine among many listeners. `kv_cache`: the engine's memory for keys and values,
    which is shared out by the page; None: it has no limit.

    The caller's loop: hand over what came in, `expire`, `plan`; with a plan, do the step and
    `commit` it, or `book` it, give away what it made, and `learn`; without one, sleep until
    `next_wake` or until something comes in. An id names one utterance, once. An utterance ends by
    `cancel`, by `expire`, by `finish` without any text or by a step result that says so; what still
    comes in for it afterwards is ignored.
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
        self._admission = AdmissionControl(config, self._requests)
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
        min_start_tokens: int | None = None,
        text_needed: int = 1,
        continues: bool = False,
        spoken: Spoken | None = None,
        speed: float = 1.0,
        lookahead: int = 0,
        payer: tuple[str, float] = ("", 1.0),
    ) -> Admission:
        """A new utterance, as `Utterance` describes it. Refused means that nothing is kept of it.

        `lead_cap` and `min_start_tokens` replace the config's; a cap below the reserve counts as
        the reserve. `spoken`: by another engine; `listener_free_at` is then when the listener will
        have heard that. `lookahead`: so many samples that were made wait for more (`Playback`).
        `payer`: its account, and that account's share. Raises ValueError for an id in use,
        DoesNotFit for a prompt that the engine's memory could not hold if there were nobody else.
        """
        if id in self._requests.utterances:
            raise ValueError(f"utterance {id!r} is open already: an id names one utterance")
        self._requests.check_memory(prompt_positions(prompt_tokens, 1))
        self._opened += 1
        config = self.config
        cap, start = config.lead_cap_of(lead_cap), config.start_tokens_of(min_start_tokens)
        made = (config.sample_rate, config.packet_samples)
        playback = Playback.at_speed(speed, *made, listener_free_at, lookahead)
        account, share = payer
        row = Utterance(
            id=id,
            order=self._opened,
            prompt_tokens=prompt_tokens,
            layout=Layout(layout),
            opened_at=now,
            lead_cap=cap,
            min_start_tokens=start,
            listener_free_at=listener_free_at,
            playback=playback,
            text_needed=text_needed,
            continues=continues,
            speed=speed,
            account=account,
            share=share,
        )
        if spoken is not None:
            row.resume(spoken, now)
        return self._admit(row, now)

    def _admit(self, row: Utterance, now: float) -> Admission:
        """Decide about a new one, and keep it if it is not refused."""
        admission = self._admission.decide(row, self.time_capacity)
        if isinstance(admission, Queued):
            self._requests.enqueue(row)
        elif isinstance(admission, Admitted):
            self._requests.admit(row, now)
        return admission

    def append(self, id: str, text_tokens: int, now: float) -> None:
        """More text came. Raises ValueError after `finish` and for a negative count, DoesNotFit for
        text that is to be in the prompt and is too much for the engine's memory."""
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
        """No more text will come. False: there is nothing to speak, the utterance is over."""
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
        """End it now; its slot is free at the next plan. False if it was over already."""
        row = self._requests.utterances.get(id)
        if row is None:
            return False
        self._end(row, now)
        self._promote(now)
        return True

    def played(self, id: str, seconds: float, now: float) -> None:
        """The listener has played `seconds` of this utterance."""
        row = self._requests.utterances.get(id)
        if row is not None:
            row.playback.played(seconds, now)
            row.parked = row.phase is Phase.SPEAKING and is_ahead(row, now, self.config)

    def set_lead_cap(self, id: str, seconds: float, now: float) -> None:
        """So much unplayed audio is enough for this listener from now on.

        A client that saves a file takes audio faster than it would be played. A cap that grows with
        what it took lets it have all that the machine can make, and its playback deadlines, which
        are far away, keep it behind everybody who listens.
        """
        row = self._requests.utterances.get(id)
        if row is not None:
            row.lead_cap = self.config.lead_cap_of(seconds)
            row.parked = row.phase is Phase.SPEAKING and is_ahead(row, now, self.config)

    def expire(self, now: float) -> tuple[str, ...]:
        """End those that have queued for too long, and those that have to leave a full queue for
        an account's that has less; the caller tells them."""
        expired = []
        while (row := self._admission.crowded_out()) is not None:
            expired.append(row.id)
            self._end(row, now)
        while (row := self._requests.first_new) is not None and self._ends_at(row) <= now:
            expired.append(row.id)
            self._end(row, now)
        return tuple(expired)

    # The step -------------------------------------------------------------------------------

    def plan(self, now: float) -> StepPlan | None:
        """What the next step should do; None if there is nothing to do now. Changes nothing."""
        requests = self._requests
        speaking, waiting = requests.speaking.values(), requests.waiting.values()
        return self._planner.plan(speaking, waiting, requests.free_slots, now)

    def commit(self, plan: StepPlan, result: StepResult, now: float) -> list[str]:
        """The step `plan` was done: `book` it, and `learn` from it. Gives what `book` gives."""
        held = self.book(plan, result, now)
        self.learn(plan, result.seconds, now)
        return held

    def book(self, plan: StepPlan, result: StepResult, now: float) -> list[str]:
        """Note what the step made. What was cancelled in the meantime is passed over.

        Gives who has used up its text by that.
        """
        requests = self._requests
        requests.forget()
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

    def learn(self, plan: StepPlan, seconds: float, now: float) -> None:
        """Learn from how long the step took, and admit those for whom there is room now. Behind
        `book`; listeners need not wait for it."""
        if not (plan.swaps or plan.resumes):  # nobody knows what that took of its time
            self.cost.observe(Load.of(plan), seconds)
        self._promote(now)

    def next_wake(self, now: float) -> float | None:
        """When to plan (or expire) again if nothing comes in until then; None for never."""
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

    # What there is to know ------------------------------------------------------------------

    def stats(self, id: str, now: float | None = None) -> Stats:
        """Snapshot of an utterance, counting a hold that is not over up to `now`.

        One that is over is known until the next commit. Raises KeyError for others.
        """
        return self._requests.stats(id, now)

    def held_seconds(self, id: str, now: float) -> float:
        """`stats(id, now).held_seconds` without the rest, for every packet asks."""
        return self._requests.held_seconds(id, now)

    @property
    def active(self) -> int:
        """Admitted utterances that are not over."""
        return self._requests.active

    @property
    def held(self) -> int:
        """Speaking utterances that wait for text."""
        return sum(not row.can_go_on for row in self._requests.speaking.values())

    @property
    def queued(self) -> int:
        """Utterances that wait for capacity."""
        return len(self._requests.queue)

    @property
    def pages_used(self) -> int:
        """Pages of the KV cache that rows have; 0 where it has no limit."""
        kv = self._requests.kv
        return 0 if kv is None else kv.size.pages - len(kv.free)

    @property
    def capacity(self) -> int:
        """Utterances that can be active at once, by what was learned of step times and memory: for
        whoever chooses between machines. Admission looks at the memory itself."""
        return min(self.time_capacity, self._admission.turns_in_memory)

    @property
    def time_capacity(self) -> int:
        """Utterances that may be active at once, by what has been learned about step times."""
        config = self.config
        budget = config.utilisation * config.frame_seconds
        return self.cost.capacity(budget, config.slots, config.rows_per_step)

    # Moves ----------------------------------------------------------------------------------

    def _ends_at(self, queued: Utterance) -> float:
        return queued.opened_at + self.config.queue_timeout

    def _promote(self, now: float) -> None:
        """Admit from the queue, oldest first, while there is capacity."""
        while (row := self._admission.next(self.time_capacity)) is not None:
            self._requests.admit(row, now)

    def _start(self, prefill: Prefill, result: StepResult) -> None:
        row = self._requests.waiting.get(prefill.id)
        if row is None or prefill.id not in result.frames:
            return
        self._requests.begin(row, prefill)
        row.layout = prefill.layout
        row.frames, row.codec_pending = prefill.spoken + 1, 1
        row.served = self._steps

    def _count(self, plan: StepPlan, result: StepResult) -> None:
        """The frames that were made, and those that the codec has read."""
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
                ran = -(-decoded[run.id] // self.config.frame_samples)
                row.codec_pending -= min(ran, row.codec_pending)
                row.codec_runs += run.id in samples

    def _deliver(self, id: str, samples: int, last: bool, seconds: float, now: float) -> None:
        """Samples left the codec: let the mirror hear them."""
        row = self._requests.speaking.get(id)
        if row is None:
            return
        deadline = row.playback.deadline()
        late = row.playback.feed(samples, now)
        if last:
            late += row.playback.end(now)
        if late > 0.0 and row.resumed_at is not None and deadline is not None:
            # The step under way when the text came, and two frames for a packet.
            row.starved_underruns += row.resumed_at + 3.0 * seconds > deadline

    def _settle(self, ids: Iterable[str], now: float) -> list[str]:
        """After a step: hold rows whose text is used up, park those that are far ahead."""
        speaking, config = self._requests.speaking, self.config
        held = []
        for id in ids:
            row = speaking.get(id)
            if row is not None:
                row.note_text(now)
                if row.held_since == now:
                    held.append(id)
                row.parked = is_ahead(row, now, config)
        return held

    def _end(self, row: Utterance, now: float) -> None:
        self._admission.note_end(row, now)
        self._requests.end(row, now)
