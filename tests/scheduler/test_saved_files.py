"""Files that are saved as fast as the machine makes them, and listeners who must not notice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.scheduler.test_simulator import CPU, MIDDLE
from tts_scheduler import SchedulerConfig
from tts_scheduler.machine import Machine
from tts_scheduler.playback import FRAME_SECONDS
from tts_scheduler.report import TurnReport, measure
from tts_scheduler.simulator import Simulation, Turn
from tts_scheduler.workload import COMPLETE, FAST, STEADY, Workload

TURNS = 3
LISTENERS = Workload(0, turns=TURNS, feeds=(FAST, STEADY), reporting=0.0, barge_in=0.0)
FILE = replace(LISTENERS, tokens=(250, 250), feeds=(COMPLETE,), follow_up=0.0, pause_seconds=0.0)
LEAD_CAP = 30.0
"""Of requests over HTTP, in seconds."""


class WithFiles(Simulation):
    """The first sessions listen. The others save files: what a client has taken counts on top of
    their lead cap where `saved`, as `Utterances` tells the engine."""

    def __init__(
        self, listeners: int, files: int, machine: Machine, config: SchedulerConfig, saved: bool
    ) -> None:
        self.listeners, self.saved = listeners, saved
        self.reports: list[TurnReport] = []
        self.file_seconds: list[float] = []
        workload = replace(LISTENERS, sessions=listeners + files)
        super().__init__(workload, machine, config, seed=3)

    def _ask(self, session: int, listener_free_at: float | None = None, tries: int = 1) -> None:
        if session < self.listeners:
            super()._ask(session, listener_free_at, tries)
            return
        listeners, self.workload = self.workload, FILE
        before = set(self.turns)
        super()._ask(session, None, tries)
        self.workload = listeners
        for id in set(self.turns) - before:
            self.scheduler.set_lead_cap(id, LEAD_CAP, self.now)

    def _publish(self, result: Any) -> None:
        super()._publish(result)
        for id, turn in self.turns.items():
            if self.saved and turn.session >= self.listeners:
                self.scheduler.set_lead_cap(id, LEAD_CAP + turn.to_hear(self.now), self.now)

    def _over(self, turn: Turn, reason: str) -> None:
        if turn.session < self.listeners:
            self.reports.append(measure(turn.trace))
        elif reason == "complete":
            self.file_seconds.append(self.now - turn.trace.asked_at)
        super()._over(turn, reason)


def starts(simulation: WithFiles) -> list[float]:
    return sorted(report.ttfa for report in simulation.reports if report.ttfa is not None)


@pytest.mark.parametrize(
    ("machine", "slots", "listeners", "files"),
    [
        pytest.param(CPU, 8, 2, 2, id="cpu"),
        pytest.param(MIDDLE, 96, 18, 8, id="gpu", marks=pytest.mark.slow),
    ],
)
def test_files_use_the_time_that_nobody_needs_and_cost_listeners_nothing(
    machine: Machine, slots: int, listeners: int, files: int
) -> None:
    config = SchedulerConfig(slots=slots)
    capped, saved = (WithFiles(listeners, files, machine, config, way) for way in (False, True))
    for simulation in (capped, saved):
        simulation.run()
        assert len(simulation.reports) >= TURNS * listeners
        assert sum(report.underruns for report in simulation.reports) == 0
    frame = FRAME_SECONDS
    for share in (0.5, 0.95):
        before, after = (one[int(share * len(one))] for one in map(starts, (capped, saved)))
        assert after <= before + frame, f"listeners wait {after:.3f} s, {before:.3f} s before"
    mean = [sum(one.file_seconds) / len(one.file_seconds) for one in (capped, saved)]
    assert mean[1] < 0.75 * mean[0], f"a file takes {mean[1]:.1f} s, {mean[0]:.1f} s before"
