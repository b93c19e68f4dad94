"""A tiny engine around the scheduler, with a clock that tests move by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tts_scheduler import (
    Admission,
    CostModel,
    KVCacheSize,
    Layout,
    Load,
    Scheduler,
    SchedulerConfig,
    StepCosts,
    StepPlan,
    StepResult,
)

FRAME = 1920


@dataclass
class Rig:
    """Runs plans as long as `costs` say; utterances speak `frames` frames, then end."""

    scheduler: Scheduler
    costs: StepCosts
    now: float = 100.0
    frames: dict[str, int] = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)
    length: dict[str, int] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    plans: list[StepPlan] = field(default_factory=list)
    underruns: dict[str, int] = field(default_factory=dict)
    """Of those that are over."""

    def open(
        self,
        id: str,
        text: int = 0,
        *,
        finish: bool = False,
        frames: int = 10_000,
        prompt_tokens: int = 10,
        layout: Layout = Layout.AUTO,
        listener_free_at: float | None = None,
        lead_cap: float | None = None,
        speed: float = 1.0,
    ) -> Admission:
        """Open an utterance and give it its first text."""
        answer = self.scheduler.open(
            id,
            prompt_tokens=prompt_tokens,
            now=self.now,
            layout=layout,
            listener_free_at=listener_free_at,
            lead_cap=lead_cap,
            speed=speed,
        )
        self.length[id] = frames
        self.append(id, text)
        if finish:
            self.scheduler.finish(id, self.now)
        return answer

    def append(self, id: str, text: int) -> None:
        self.scheduler.append(id, text, self.now)

    def finish(self, id: str) -> bool:
        return self.scheduler.finish(id, self.now)

    def plan(self) -> StepPlan | None:
        return self.scheduler.plan(self.now)

    def step(self, seconds: float | None = None) -> StepPlan | None:
        """One turn of the loop; None (and no time passes) if there was nothing to do."""
        plan = self.plan()
        if plan is not None:
            usual = self.costs.seconds(Load.of(plan))
            result = self.execute(plan, usual if seconds is None else seconds)
            self.now += result.seconds
            self.scheduler.commit(plan, result, self.now)
            for id in result.ended:
                self.underruns[id] = self.scheduler.stats(id).underruns
            self.plans.append(plan)
        return plan

    def execute(self, plan: StepPlan, seconds: float = 0.01) -> StepResult:
        """What the engine does with a plan."""
        making = [p.id for p in plan.prefills] + [d.id for d in plan.decodes]
        ended = []
        for id in making:
            self.frames[id] = self.frames.get(id, 0) + 1
            self.pending[id] = self.pending.get(id, 0) + 1
            if self.frames[id] == self.length[id]:
                ended.append(id)
        runs = {c.id: c.frames for c in plan.codec}
        runs.update((id, self.pending[id]) for id in ended)
        for id, frames in runs.items():
            self.pending[id] -= frames
            assert self.pending[id] >= 0, f"{id}: more frames through the codec than were made"
        self.ended += ended
        samples = {id: frames * FRAME for id, frames in runs.items()}
        return StepResult(seconds, frozenset(making), samples, frozenset(ended))

    def steps(self, number: int) -> list[StepPlan]:
        """So many steps; time passes where there is nothing to do."""
        done: list[StepPlan] = []
        while len(done) < number:
            plan = self.step()
            if plan is None:
                wake = self.scheduler.next_wake(self.now)
                assert wake is not None, "nothing will ever be done"
                self.now = wake
            else:
                done.append(plan)
        return done


def taught(costs: StepCosts, rows: int = 64) -> CostModel:
    """A cost model that knows a machine of these costs by heart."""
    cost = CostModel(costs)
    for _ in range(60):
        for number in (1, 2, 4, rows):
            cost.observe(Load(0, 0, number, number), costs.seconds(Load(0, 0, number, number)))
            cost.observe(Load(1, 20, number, number), costs.seconds(Load(1, 20, number, number)))
    return cost


@pytest.fixture
def make_rig() -> Callable[..., Rig]:
    """make_rig(costs=..., step_seconds=..., **config): a rig on a machine that is known."""

    def make(
        costs: StepCosts | None = None,
        step_seconds: float = 0.01,
        kv_cache: KVCacheSize | None = None,
        **settings: object,
    ) -> Rig:
        if costs is None:
            costs = StepCosts(step_seconds, 0.0, 0.0, 0.0, 0.0, 0.0)
        config = SchedulerConfig(**settings)  # type: ignore[arg-type]
        return Rig(Scheduler(config, taught(costs), kv_cache=kv_cache), costs)

    return make
