"""From the state of all utterances to one `StepPlan`: pure, nothing is changed here.

awake rows → in order → as many as the step may hold → starts that nobody on air pays for
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tts_scheduler.config import SchedulerConfig
from tts_scheduler.cost import CostModel
from tts_scheduler.draft import Draft
from tts_scheduler.plan import StepPlan
from tts_scheduler.policy import Policy, resume_at, start_at, start_key
from tts_scheduler.utterance import Utterance


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans steps for one engine. `cost` is read, never taught."""

    config: SchedulerConfig
    cost: CostModel
    policy: Policy

    def plan(
        self,
        speaking: Iterable[Utterance],
        waiting: Iterable[Utterance],
        free_slots: Sequence[int],
        now: float,
    ) -> StepPlan | None:
        """The next step, or None if there is nothing to do at `now`."""
        rows, starved, resting = _sort_out(speaking, now, self.config)
        starts = [row for row in waiting if start_at(row, self.config) <= now]
        if not (rows or starved or starts):
            return None
        if not (starts and free_slots):
            return self._draft(rows, starved, resting, now, False).finished_plan()
        draft = self._draft(rows, starved, resting, now, True)
        starts.sort(key=start_key)
        live = len(rows) + len(resting)
        draft.add_starts(starts, free_slots, live if self.policy.protects else None)
        plan = draft.finished_plan()
        if plan is None and rows:  # all yielded to a start that does not fit: they need not
            plan = self._draft(rows, starved, resting, now, False).finished_plan()
        return plan

    def _draft(
        self,
        rows: Sequence[Utterance],
        starved: Sequence[Utterance],
        resting: Sequence[Utterance],
        now: float,
        starting: bool,
    ) -> Draft:
        """The step without its starts; `starting`: somebody wants to start in it."""
        costs = self.cost.costs_at(min(len(rows), self.config.rows_per_step))
        draft = Draft(self.config, costs, self.cost.caution, now, len(rows))
        draft.rank(rows, self.policy)
        draft.choose(starved, resting, self.policy.protects, starting)
        return draft


def _sort_out(
    speaking: Iterable[Utterance], now: float, config: SchedulerConfig
) -> tuple[list[Utterance], list[Utterance], list[Utterance]]:
    """Rows that can make a frame; rows that cannot, for want of text or of room in the engine,
    with frames to flush; parked rows."""
    rows: list[Utterance] = []
    starved: list[Utterance] = []
    resting: list[Utterance] = []
    for row in speaking:
        # not row.can_go_on, but faster
        if not (row.finished or row.frames < row.text_tokens):
            if row.codec_pending:
                starved.append(row)
        elif row.parked and now < resume_at(row, config):
            resting.append(row)
        elif now < row.retry_at:  # the engine had no room for it just now
            if row.codec_pending:
                starved.append(row)
        else:
            rows.append(row)
    return rows, starved, resting
