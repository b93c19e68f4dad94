"""Warming up: what is run, and which of it is measured."""

from __future__ import annotations

import pytest

from realtime_tts import demo_voice
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.engine.make import load_engine
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.engine.warm_up import warm_up
from realtime_tts.errors import CheckpointError
from tests.engine.faulty import Faults, FaultyEngine
from tts_scheduler import StepPlan

STEPS = 1 + 7 + 1  # a start and seven frames of a short text, and the start of a whole one


@pytest.mark.parametrize(
    ("rehearse", "runs"), [(True, {1: 2, 2: 2, 4: 2}), (False, {1: 2, 2: 1, 4: 1})]
)
def test_every_size_is_measured_once_and_rehearsed_where_that_matters(
    rehearse: bool, runs: dict[int, int]
) -> None:
    ran: list[StepPlan] = []
    engine = FaultyEngine(FakeEngineConfig(step_seconds=0.0), Faults(before_step=ran.append))
    measured = warm_up(engine, (1, 2, 3, 4), 4, lambda what, done, total: None, rehearse=rehearse)
    for rows, times in runs.items():
        assert sum(step.plan.rows == rows for step in measured) == STEPS
        assert sum(plan.rows == rows for plan in ran) == STEPS * times
    assert [step.plan for step in measured[:STEPS]] == ran[8:16] + ran[17:18]
    assert engine.open_utterances == 0


def test_more_frames_than_positions_are_refused_before_they_are_tried() -> None:
    config = EngineConfig(model=str(demo_voice.folder()), threads=1, max_frames=4_033)
    with pytest.raises(CheckpointError, match=r"4033 frames .* 4096 positions .* --max-frames"):
        load_engine(config, lambda *stage: None)
