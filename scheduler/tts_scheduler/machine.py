"""The machine of a simulation: how long its steps really take."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tts_scheduler.cost import CostModel, Load, StepCosts
from tts_scheduler.kv_cache import KVCacheSize
from tts_scheduler.plan import StepPlan


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine whose steps take what `costs` say, times a jitter, and now and then a hiccup.

    `kv_cache`: its memory for keys and values; None: no limit. `swap_seconds`: time to copy the
    keys and values of a row to host memory or back.
    """

    costs: StepCosts = StepCosts()
    jitter: float = 0.05
    hiccup_chance: float = 0.002
    hiccup_seconds: float = 0.02
    kv_cache: KVCacheSize | None = None
    swap_seconds: float = 0.0

    def seconds(self, plan: StepPlan, random: Random) -> float:
        """Return the seconds that one step takes, drawn from `random`."""
        seconds = self.planned_seconds(plan) + self.swap_seconds * plan.swaps
        seconds *= random.uniform(1.0 - self.jitter, 1.0 + self.jitter)
        return seconds + self.hiccup_seconds * (random.random() < self.hiccup_chance)

    def planned_seconds(self, plan: StepPlan) -> float:
        """Return what the step takes without copies, jitter and hiccups, in seconds."""
        return self.costs.seconds(Load.of(plan))

    def lesson(self) -> CostModel:
        """Return a cost model that has observed warm-up steps of this machine."""
        cost = CostModel()
        for _ in range(20):
            for rows in (1, 2, 4, 8, 16, 32, 64):
                for load in (Load(0, 0, rows, rows), Load(0, 0, rows, 0), Load(1, 64, rows, rows)):
                    cost.observe(load, self.costs.seconds(load))
        return cost
