"""Scheduler: the state of all utterances and the moves that change it.

Give it what happens (open, append, finish, cancel, a step that is done), ask it what to do next.
Seconds are floats on one clock of the caller, which never runs backwards.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from math import inf

from tts_scheduler.admission import Admission, Admitted, Queued, Turnover, admit
from tts_scheduler.config import SchedulerConfig
from tts_scheduler.cost import CostModel, Load
from tts_scheduler.plan import Layout, Prefill, StepPlan, StepResult
from tts_scheduler.planner import Planner
from tts_scheduler.playback import Playback
from tts_scheduler.policy import DEADLINE_ORDER, Policy, is_ahead, resume_at, start_at
from tts_scheduler.utterance import Phase, Stats, Utterance


class Scheduler:
    """Shares one engine among many listeners.

    The caller's loop: hand over what came in, `expire`, `plan`; with a plan, do the step and
    `commit` it; without one, sleep until `next_wake` or until something comes in. An id names one
    utterance, once. An utterance ends by `cancel`, by `expire`, by `finish` without any text or by
    a step result that says so; what still comes in for it afterwards is ignored.
    """

    def __init__(
        self,
        config: SchedulerConfig,
        cost: CostModel | None = None,
        policy: Policy = DEADLINE_ORDER,
    ) -> None:
        self.config = config
        self.cost = CostModel() if cost is None else cost
        self._planner = Planner(config, self.cost, policy)
        self._utterances: dict[str, Utterance] = {}
        self._queue: deque[Utterance] = deque()
        self._waiting: dict[str, Utterance] = {}
        self._speaking: dict[str, Utterance] = {}
        self._free_slots = list(range(config.slots))
        self._turnover = Turnover(config.queue_timeout)
        self._over: dict[str, Stats] = {}
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
    ) -> Admission:
        """A new utterance. Refused means that nothing is kept of it.

        `prompt_tokens`: length of its prompt without text. `listener_free_at`: until then the
        listener still hears the previous turn. `lead_cap` and `min_start_tokens` replace the
        config's for this utterance; a cap below the reserve counts as the reserve. `text_needed`:
        text tokens that the prompt takes with frame 0, if there are so many; 0 and less: so many
        further frames need no text of the caller's. Raises ValueError for an id in use.
        """
        if id in self._utterances:
            raise ValueError(f"utterance {id!r} is open already: an id names one utterance")
        admission = self._admission()
        if not isinstance(admission, Admitted | Queued):
            return admission
        config = self.config
        self._opened += 1
        row = self._utterances[id] = Utterance(
            id=id,
            order=self._opened,
            prompt_tokens=prompt_tokens,
            layout=Layout(layout),
            opened_at=now,
            lead_cap=max(config.reserve, config.lead_cap if lead_cap is None else lead_cap),
            min_start_tokens=max(
                1, config.min_start_tokens if min_start_tokens is None else min_start_tokens
            ),
            listener_free_at=listener_free_at,
            playback=Playback(config.sample_rate, config.packet_samples, listener_free_at),
            text_needed=text_needed,
        )
        if isinstance(admission, Queued):
            self._queue.append(row)
        else:
            self._admit(row, now)
        return admission

    def append(self, id: str, text_tokens: int, now: float) -> None:
        """More text came. Raises ValueError after `finish` and for a negative count."""
        row = self._utterances.get(id)
        if row is None or text_tokens == 0:
            return
        if row.finished or text_tokens < 0:
            what = "after its text was finished" if row.finished else "less than nothing"
            raise ValueError(f"{text_tokens} text tokens for utterance {id!r}: {what}")
        row.receive(text_tokens, now)

    def finish(self, id: str, now: float) -> bool:
        """No more text will come. False: there is nothing to speak, the utterance is over."""
        row = self._utterances.get(id)
        if row is None:
            return False
        row.finished = True
        row.receive(0, now)
        if row.received == 0:
            self._end(row, now)
            self._promote(now)
            return False
        return True

    def flush(self, id: str, now: float) -> None:
        """Start speaking with the text there is, whatever the start policy says."""
        row = self._utterances.get(id)
        if row is not None:
            row.flushed = True

    def cancel(self, id: str, now: float) -> bool:
        """End it now; its slot is free at the next plan. False if it was over already."""
        row = self._utterances.get(id)
        if row is None:
            return False
        self._end(row, now)
        self._promote(now)
        return True

    def played(self, id: str, seconds: float, now: float) -> None:
        """The listener has played `seconds` of this utterance."""
        row = self._utterances.get(id)
        if row is not None:
            row.playback.played(seconds, now)
            row.parked = row.phase is Phase.SPEAKING and is_ahead(row, now, self.config)

    def expire(self, now: float) -> tuple[str, ...]:
        """End those that have queued for too long; the caller tells them."""
        expired = []
        while self._queue and self._queue_ends_at() <= now:
            expired.append(self._queue[0].id)
            self._end(self._queue[0], now)
        return tuple(expired)

    # The step -------------------------------------------------------------------------------

    def plan(self, now: float) -> StepPlan | None:
        """What the next step should do; None if there is nothing to do now. Changes nothing."""
        return self._planner.plan(
            self._speaking.values(), self._waiting.values(), self._free_slots, now
        )

    def commit(self, plan: StepPlan, result: StepResult, now: float) -> None:
        """The step `plan` was done. What was cancelled in the meantime is passed over."""
        self._over.clear()
        self._steps += 1
        self.cost.observe(Load.of(plan), result.seconds)
        for prefill in plan.prefills:
            self._start(prefill, result, now)
        for decode in plan.decodes:
            row = self._speaking.get(decode.id)
            if row is not None and decode.id in result.frames:
                row.frames += 1
                row.codec_pending += 1
                row.served = self._steps
        for run in plan.codec:
            row = self._speaking.get(run.id)
            if row is not None:
                row.codec_pending -= min(run.frames, row.codec_pending)
                row.codec_runs += 1
        for id, samples in result.samples.items():
            self._deliver(id, samples, id in result.ended, result.seconds, now)
        for id in sorted(result.ended):  # in an order that does not depend on hashing
            ended = self._utterances.get(id)
            if ended is not None:
                self._end(ended, now)
        for decode in plan.decodes:
            self._settle(decode.id, now)
        for prefill in plan.prefills:
            self._settle(prefill.id, now)
        self._promote(now)

    def next_wake(self, now: float) -> float | None:
        """When to plan (or expire) again if nothing comes in until then; None for never."""
        if self.plan(now) is not None:
            return now
        times = [start_at(row, self.config) for row in self._waiting.values()]
        times += [
            resume_at(row, self.config)
            for row in self._speaking.values()
            if row.parked and row.can_go_on
        ]
        wake = min((at for at in times if at > now), default=inf)
        if self._queue:
            wake = min(wake, max(now, self._queue_ends_at()))
        return None if wake == inf else wake

    # What there is to know ------------------------------------------------------------------

    def stats(self, id: str, now: float | None = None) -> Stats:
        """Snapshot of an utterance, counting a hold that is not over up to `now`.

        One that is over is known until the next commit. Raises KeyError for others.
        """
        row = self._utterances.get(id)
        return self._over[id] if row is None else row.stats(now)

    @property
    def active(self) -> int:
        """Admitted utterances that are not over."""
        return len(self._waiting) + len(self._speaking)

    @property
    def held(self) -> int:
        """Speaking utterances that wait for text."""
        return sum(not row.can_go_on for row in self._speaking.values())

    @property
    def queued(self) -> int:
        """Utterances that wait for capacity."""
        return len(self._queue)

    @property
    def capacity(self) -> int:
        """Utterances that may be active at once, by what has been learned about step times."""
        config = self.config
        budget = config.utilisation * config.frame_seconds
        return self.cost.capacity(budget, config.slots, config.rows_per_step)

    # Moves ----------------------------------------------------------------------------------

    def _admission(self) -> Admission:
        return admit(self.active, self.queued, self.capacity, self._turnover, self.config)

    def _queue_ends_at(self) -> float:
        return self._queue[0].opened_at + self.config.queue_timeout

    def _admit(self, row: Utterance, now: float) -> None:
        row.move(Phase.WAITING)
        row.admitted_at = now
        self._waiting[row.id] = row

    def _promote(self, now: float) -> None:
        """Admit from the queue, oldest first, while there is capacity."""
        while self._queue and self.active < self.capacity:
            self._admit(self._queue.popleft(), now)

    def _start(self, prefill: Prefill, result: StepResult, now: float) -> None:
        row = self._waiting.get(prefill.id)
        if row is None or prefill.id not in result.frames:
            return
        del self._waiting[prefill.id]
        self._speaking[prefill.id] = row
        self._free_slots.remove(prefill.slot)
        row.move(Phase.SPEAKING)
        row.slot = prefill.slot
        row.layout = prefill.layout
        row.frames = row.codec_pending = 1
        row.served = self._steps

    def _deliver(self, id: str, samples: int, last: bool, seconds: float, now: float) -> None:
        """Samples left the codec: let the mirror hear them."""
        row = self._speaking.get(id)
        if row is None:
            return
        deadline = row.playback.deadline()
        late = row.playback.feed(samples, now)
        if last:
            late += row.playback.end(now)
        if late > 0.0 and row.resumed_at is not None and deadline is not None:
            # The step under way when the text came, and two frames for a packet.
            row.starved_underruns += row.resumed_at + 3.0 * seconds > deadline

    def _settle(self, id: str, now: float) -> None:
        """After a step: hold the row if its text is used up, park it if it is far ahead."""
        row = self._speaking.get(id)
        if row is not None:
            row.note_text(now)
            row.parked = is_ahead(row, now, self.config)

    def _end(self, row: Utterance, now: float) -> None:
        """Every way an utterance ends comes through here, and each comes through once."""
        if row.phase is Phase.QUEUED:
            self._queue.remove(row)
        else:
            self._turnover.note(now - row.admitted_at)
            self._waiting.pop(row.id, None)
            self._speaking.pop(row.id, None)
        if row.slot >= 0:
            insort(self._free_slots, row.slot)
        row.move(Phase.ENDED)
        del self._utterances[row.id]
        self._over[row.id] = row.stats(now)
