"""BatchBuilder: which rows are in the step, and how long it may last.

Playback deadlines are kept by arithmetic over predicted durations: `_latest_end` says how long the
coming step may last before a listener loses a packet that could have been in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from tts_scheduler.config import SchedulerConfig
from tts_scheduler.cost import StepCosts
from tts_scheduler.page_planner import PagePlanner
from tts_scheduler.plan import CodecRun, Decode, Layout, Prefill, StepPlan
from tts_scheduler.playback import FRAME_SECONDS
from tts_scheduler.policy import Policy, codec_run, due, is_text_late, may_be_late, next_packet
from tts_scheduler.utterance import Utterance


@dataclass(slots=True, eq=False)
class _Row:
    """A speaking row that can make its next frame.

    `deadline` is the playback deadline of the packet that the frame is for, and `further` how many
    more steps that packet needs. `due` is when this step must end at the latest, if the later ones
    are usual steps. `pressing`: the row has less lead than the reserve. `codec`: frames to decode
    if it makes one.
    """

    row: Utterance
    deadline: float
    further: int
    due: float
    pressing: bool
    codec: int = 0


class BatchBuilder:
    """A plan under construction. All predicted seconds include the cost model's caution."""

    def __init__(
        self, config: SchedulerConfig, costs: StepCosts, caution: float, now: float, rows: int
    ) -> None:
        self._config = config
        self._costs = StepCosts(
            costs.base * caution,
            costs.row * caution,
            costs.codec_frame * caution,
            costs.prefill * caution,
            costs.prefill_row * caution,
            costs.prefill_token * caution,
        )
        self._now = now
        limit = self._rows_per_step = config.rows_per_step
        per_row = self._costs.row + self._costs.codec_frame
        self._step = self._costs.base + per_row * min(rows, limit)
        """Predicted seconds of a usual step."""
        self._cycle = self._step * max(1, -(-rows // limit))
        """Predicted seconds until every row has made a frame, in one step or several."""
        self._pressing_cycle = self._step
        """Predicted seconds until every pressing row has made a frame."""
        self._ranked: list[_Row] = []
        self._chosen: list[_Row] = []
        self._codec: list[CodecRun] = []
        self._prefills: list[Prefill] = []
        self._seconds = self._costs.base
        """Predicted seconds of the step as far as it is planned."""
        self._latest = inf
        self._overloaded = False
        """Whether a listener on air will get a packet late: not the moment for another start."""

    def rank(self, rows: Iterable[Utterance], policy: Policy) -> None:
        """Sort the rows by the policy, and mark those that must not be left out without need."""
        now, config, step, key = self._now, self._config, self._step, policy.key
        horizon = now + config.reserve if policy.protects else inf
        keyed = []
        pressing = 0
        for row in rows:
            deadline, further = next_packet(row)
            row_due = deadline - further * step if further else deadline
            is_pressing = row_due < horizon
            pressing += is_pressing
            entry = _Row(row, deadline, further, row_due, is_pressing)
            keyed.append((key(row, row_due), row.order, entry))
        keyed.sort()
        self._ranked = [entry for _, _, entry in keyed]
        self._pressing_cycle = step * max(1, -(-(pressing + 1) // self._rows_per_step))

    def choose(
        self,
        starved: Iterable[Utterance],
        resting: Iterable[Utterance],
        protects: bool,
        starting: bool,
    ) -> None:
        """Take the first rows of the ranking, and leave out what a pressing row cannot afford.

        `starved`: rows that cannot make a frame, but have frames for the codec. `resting`: parked
        rows. `protects`: see `Policy`. `starting`: whether a turn waits to start in this step.
        """
        for row in starved:
            self._add_codec(row, row.codec_pending)
        ranked, limit = self._ranked, self._rows_per_step
        wanted = len(ranked)
        if protects:
            fresh = [r for r in ranked if r.pressing and r.row.playback.first_sent_at is None]
            if fresh and len(ranked) > limit:
                ranked = self._with_fresh(fresh)
            if fresh or starting:
                wanted = self._without_calm(ranked)
        self._take(ranked[: min(limit, wanted)])
        if protects:
            self._latest = self._latest_end(ranked, starved, resting)
            self._leave_out()
        for entry in ranked[len(self._chosen) :]:
            self._add_codec(entry.row, self._codec_frames(entry.row))

    def _without_calm(self, ranked: list[_Row]) -> int:
        """Return how many rows of the ranking have too little lead to yield to a start."""
        horizon = self._now + self._config.yield_lead
        wanted = len(ranked)
        while wanted and ranked[wanted - 1].due > horizon and not ranked[wanted - 1].pressing:
            wanted -= 1
        return wanted

    def _take(self, entries: list[_Row]) -> None:
        """Choose the rows that make a frame, and plan the codec runs that follow it."""
        self._chosen = entries
        now, config = self._now, self._config
        cycle, pressing_cycle = self._cycle, self._pressing_cycle
        seconds, cost_row, cost_frame = self._seconds, self._costs.row, self._costs.codec_frame
        for entry in entries:
            row = entry.row
            has_next = row.finished or row.frames + 1 < row.text_tokens
            wait = pressing_cycle if row.playback.first_sent_at is None else cycle
            coming = 0 if has_next and may_be_late(row, now, wait, config) else 1
            frames = codec_run(row, row.codec_pending + coming, has_next, now, wait, config)
            entry.codec = frames
            seconds += cost_row + cost_frame * frames
        self._seconds = seconds

    def _with_fresh(self, fresh: list[_Row]) -> list[_Row]:
        """Return the ranking for when not all rows fit: rows without sound go first, as far as no
        listener gets a gap because of it."""
        on_air = [r for r in self._ranked if r.row.playback.on_air or not r.pressing]
        limit, step = self._rows_per_step, self._step
        earliest = self._now + step
        ends = [(index, r.due) for index, r in enumerate(on_air)]
        kept = [(i, end) for i, end in ends if end - (i // limit) * step >= earliest]
        first = len(fresh)
        while first and any(e - ((i + first) // limit) * step < earliest for i, e in kept):
            first -= 1
        calm = next((i for i, r in enumerate(on_air) if not r.pressing), len(on_air))
        return fresh[:first] + on_air[:calm] + fresh[first:] + on_air[calm:]

    def _latest_end(
        self, ranked: Iterable[_Row], starved: Iterable[Utterance], resting: Iterable[Utterance]
    ) -> float:
        """Return when this step must end, so that every packet that can still be in time is.

        Rows behind the first `rows_per_step` need a later step, and so do parked ones. Packets that
        will be late whatever is done set no limit; unless late text explains them, they are a sign
        of overload.
        """
        limit, step = self._rows_per_step, self._step
        cost_row, cost_frame = self._costs.row, self._costs.codec_frame
        shortest = self._costs.base
        shortest += sum([cost_row + cost_frame * r.codec for r in self._chosen if r.pressing])
        earliest = self._now + shortest
        latest = inf
        for index, entry in enumerate(ranked):
            # The further steps of a pressing row also leave out the rows that can wait.
            end = entry.deadline - entry.further * shortest if entry.further else entry.deadline
            if index >= limit:
                end -= (index // limit) * step
            row = entry.row
            playback = row.playback
            if row.codec_pending and (filled := playback.runs_out_at) is not None and filled < end:
                end = filled  # frames that wait for the codec may fill an earlier packet
            if end < latest and playback.first_sent_at is not None:
                if end >= earliest:
                    latest = end
                elif not is_text_late(row, self._config):
                    self._overloaded = True
        others = [due(row, step) - step for row in resting]
        deadlines = [row.playback.runs_out_at for row in starved]
        others += [deadline for deadline in deadlines if deadline is not None]
        return min((end for end in others if earliest <= end < latest), default=latest)

    def _leave_out(self) -> None:
        """Drop rows that can wait, the last ones first, while that saves a row that cannot.

        A step without any work would save no row, so at least one piece of work is kept.
        """
        chosen, costs = self._chosen, self._costs
        kept = 0 if self._codec else 1
        while self._now + self._seconds > self._latest and len(chosen) > kept:
            if chosen[-1].pressing:
                break
            seconds = self._seconds - costs.row - costs.codec_frame * chosen[-1].codec
            due_after = chosen[-1].due - self._step
            if due_after < self._now + seconds:
                break
            self._seconds = seconds
            self._latest = min(self._latest, due_after)
            chosen.pop()

    def add_starts(
        self,
        starts: Iterable[Utterance],
        free_slots: Sequence[int],
        live: int | None,
        pages: PagePlanner | None,
    ) -> None:
        """Add prefills in order, as many as fit; the first new turn that does not fit is the last.

        `live` rows speak already and must not pay for a start; None: they may. A turn that another
        engine has spoken is on air already, too: if its own listener would pay for waiting, all
        share the cost. `pages`: the memory, if it has a limit.
        """
        config, costs = self._config, self._costs
        entered = []
        for row, slot in zip(starts, free_slots[: config.max_prefills], strict=False):
            prefill = _prefill(row, slot)
            tokens = row.prompt_tokens + prefill.text_tokens + prefill.frames
            seconds = costs.prefill_row + costs.prefill_token * tokens
            seconds += costs.codec_frame
            seconds += 0.0 if self._prefills else costs.prefill
            if self._prefills and self._seconds + seconds > config.start_seconds:
                break
            if live and not self._fits(seconds, live + len(self._prefills) + 1, row.lead_cap):
                if not row.on_air_elsewhere:
                    break
                if not self._is_last_moment(row, seconds):
                    continue
            if pages is not None and not pages.start(prefill):
                break
            self._seconds += seconds
            self._prefills.append(prefill)
            entered.append(row)
        self._first_runs(entered, self._cycle if live is None else self._pressing_cycle)

    def _is_last_moment(self, row: Utterance, seconds: float) -> bool:
        """Return whether the row's listener runs out of sound unless the row starts in this step,
        which its start makes `seconds` longer."""
        runs_out_at = row.playback.runs_out_at
        assert runs_out_at is not None, f"{row.id} is on air without a deadline"
        usual_packet = 2 * self._step
        return runs_out_at < self._now + self._seconds + seconds + usual_packet

    def _first_runs(self, entered: Sequence[Utterance], pace: float) -> None:
        """Plan the first codec runs of rows that start now; each row makes later steps longer."""
        pace += (self._costs.row + self._costs.codec_frame) * len(entered)
        for row, prefill in zip(entered, self._prefills, strict=True):
            has_next = row.finished or prefill.frames + 1 < row.text_tokens
            frames = codec_run(row, 1, has_next, self._now, pace, self._config)
            if frames:
                self._codec.append(CodecRun(row.id, prefill.slot, frames))

    def _fits(self, seconds: float, rows: int, lead_cap: float) -> bool:
        """Return whether no listener on air pays for `seconds` more in this step, nor for sharing
        later steps among `rows`."""
        config, costs, limit = self._config, self._costs, self._rows_per_step
        step = costs.base + (costs.row + costs.codec_frame) * min(rows, limit)
        if self._overloaded or step * max(1.0, rows / limit) > FRAME_SECONDS:
            return False
        # The rows that start now also make the steps after this one longer.
        joined = (costs.row + costs.codec_frame) * len(self._prefills) + config.delivery_seconds
        if self._now + self._seconds + seconds + joined <= self._latest:
            return True
        # Longer than the largest lead that a listener can have: it would never fit.
        most = min([lead_cap, *(r.row.lead_cap for r in self._ranked)])
        return self._costs.base + seconds + 2.0 * self._step > most

    def _codec_frames(self, row: Utterance) -> int:
        wait = self._cycle if row.playback.on_air else self._pressing_cycle
        return codec_run(row, row.codec_pending, True, self._now, wait, self._config)

    def _add_codec(self, row: Utterance, frames: int) -> None:
        if frames:
            self._seconds += self._costs.codec_frame * frames
            self._codec.append(CodecRun(row.id, row.slot, frames))

    def finished_plan(self) -> StepPlan | None:
        """Return the plan, or None if it contains no work."""
        rows = [entry.row for entry in self._chosen]
        decodes = tuple([Decode(row.id, row.slot, row.frames) for row in rows])
        codec = [CodecRun(r.row.id, r.row.slot, r.codec) for r in self._chosen if r.codec]
        if not (decodes or self._prefills or self._codec):
            return None
        return StepPlan(tuple(self._prefills), decodes, (*self._codec, *codec))


def _prefill(row: Utterance, slot: int) -> Prefill:
    """Return how the row starts now: in the full-text layout if all of its text is known."""
    full = row.finished and row.layout is not Layout.STREAMING
    tokens, layout = (row.received, Layout.FULL_TEXT) if full else (1, Layout.STREAMING)
    # Known frames take their text, too; without that, they are made like others as it comes.
    has_text = row.finished or row.text_tokens > row.silent_start
    silent_start = row.silent_start if has_text and not row.frames else 0
    return Prefill(row.id, slot, row.prompt_tokens, tokens, layout, row.frames, silent_start)
