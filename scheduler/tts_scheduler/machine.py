"""The machine of a simulation: how long its steps really take."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tts_scheduler.cost import CostModel, Load, StepCosts


@dataclass(frozen=True, slots=True)
class Machine:
    """What steps really take: `costs`, times a jitter, and now and then a hiccup."""

    costs: StepCosts = StepCosts()
    jitter: float = 0.05
    hiccup_chance: float = 0.002
    hiccup_seconds: float = 0.02

    def seconds(self, load: Load, random: Random) -> float:
        """Duration of one step."""
        seconds = self.costs.seconds(load) * random.uniform(1.0 - self.jitter, 1.0 + self.jitter)
        return seconds + self.hiccup_seconds * (random.random() < self.hiccup_chance)

    def lesson(self) -> CostModel:
        """A cost model that has seen warm-up steps of this machine."""
        cost = CostModel()
        for _ in range(20):
            for rows in (1, 2, 4, 8, 16, 32, 64):
                for load in (Load(0, 0, rows, rows), Load(0, 0, rows, 0), Load(1, 64, rows, rows)):
                    cost.observe(load, self.costs.seconds(load))
        return cost
