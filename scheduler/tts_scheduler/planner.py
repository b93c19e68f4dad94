"""Planner: from the state of all utterances to one `StepPlan`. Pure: nothing is changed here.

Rows that are awake → those with memory → in order → as many as the step may hold → starts that no
listener on air pays for
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tts_scheduler.batch_builder import BatchBuilder
from tts_scheduler.config import SchedulerConfig
from tts_scheduler.cost import CostModel
from tts_scheduler.kv_cache import KVCacheManager
from tts_scheduler.page_planner import PagePlanner
from tts_scheduler.plan import StepPlan
from tts_scheduler.policy import Policy, resume_at, start_at, start_key
from tts_scheduler.utterance import Utterance


@dataclass(slots=True)
class _Ready:
    """The speaking rows, sorted by what they can do now. `rows` can make a frame. `starved` lack
    text or memory for one, and have frames for the codec. `resting` are parked."""

    rows: list[Utterance]
    starved: list[Utterance]
    resting: list[Utterance]


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans steps for one engine. It reads `cost` and `kv` and changes neither; `kv` is the
    engine's memory for keys and values, None where that has no limit."""

    config: SchedulerConfig
    cost: CostModel
    policy: Policy
    kv: KVCacheManager | None = None

    def plan(
        self,
        speaking: Collection[Utterance],
        waiting: Iterable[Utterance],
        free_slots: Sequence[int],
        now: float,
    ) -> StepPlan | None:
        """Return the next step, or None if there is nothing to do at `now`."""
        ready = _sort_out(speaking, now, self.config)
        starts = [row for row in waiting if start_at(row, self.config) <= now]
        if not (ready.rows or ready.starved or starts):
            return None
        if self.kv is None:
            return self._steps(ready, starts, free_slots, now, None)
        pages = PagePlanner(self.kv, self.config, speaking, now)
        pages.idle = not (ready.rows or ready.resting)
        ready.rows, lacking = pages.fit(ready.rows)
        ready.starved += [row for row in lacking if row.codec_pending]
        plan = self._steps(ready, [] if pages.blocked else starts, free_slots, now, pages)
        return None if plan is None else pages.added_to(plan)

    def _steps(
        self,
        ready: _Ready,
        starts: list[Utterance],
        free_slots: Sequence[int],
        now: float,
        pages: PagePlanner | None,
    ) -> StepPlan | None:
        if not (starts and free_slots):
            return self._batch(ready, now, False).finished_plan()
        batch = self._batch(ready, now, True)
        starts.sort(key=start_key)
        live = len(ready.rows) + len(ready.resting)
        batch.add_starts(starts, free_slots, live if self.policy.protects else None, pages)
        plan = batch.finished_plan()
        if plan is None and ready.rows:  # all yielded to a start that does not fit: plan without it
            plan = self._batch(ready, now, False).finished_plan()
        return plan

    def _batch(self, ready: _Ready, now: float, starting: bool) -> BatchBuilder:
        """Return the step without its starts. `starting`: whether a turn waits to start in it."""
        rows = ready.rows
        costs = self.cost.costs_at(min(len(rows), self.config.rows_per_step))
        batch = BatchBuilder(self.config, costs, self.cost.caution, now, len(rows))
        batch.rank(rows, self.policy)
        batch.choose(ready.starved, ready.resting, self.policy.protects, starting)
        return batch


def _sort_out(speaking: Iterable[Utterance], now: float, config: SchedulerConfig) -> _Ready:
    rows: list[Utterance] = []
    starved: list[Utterance] = []
    resting: list[Utterance] = []
    for row in speaking:
        # inlined `not row.can_go_on`, for speed
        if not (row.finished or row.frames < row.text_tokens):
            if row.codec_pending:
                starved.append(row)
        elif row.parked and now < resume_at(row, config):
            resting.append(row)
        else:
            rows.append(row)
    return _Ready(rows, starved, resting)
