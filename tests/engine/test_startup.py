"""How long each stage of a start took is in the log."""

from __future__ import annotations

import logging

import pytest

from realtime_tts.engine.fake import FakeEngine
from realtime_tts.engine.interface import Engine, Progress
from realtime_tts.engine.startup import StageTimer, start_engine
from tts_scheduler import SchedulerConfig


def test_every_second_of_a_start_belongs_to_a_stage() -> None:
    now, heard = [100.0], list[tuple[str, int, int]]()
    timer = StageTimer(lambda *report: heard.append(report), lambda: now[0])
    reports = [
        (3.0, ("load talker", 0, 2)),
        (4.0, ("load codec", 1, 2)),
        (1.0, ("load codec", 2, 2)),
        (7.0, ("capture graphs", 0, 3)),
        (2.0, ("capture graphs", 1, 3)),
        (5.0, ("capture graphs", 3, 3)),
        (0.5, ("warm-up", 0, 1)),
        (6.0, ("warm-up", 1, 1)),
    ]
    for seconds, report in reports:
        now[0] += seconds
        timer.progress(*report)
    now[0] += 0.25
    assert timer.end() == {
        "import": 3.0,
        "load": 5.0,
        "build": 7.75,
        "capture": 7.0,
        "warm_up": 6.0,
        "all": 28.75,
    }
    assert heard == [report for _, report in reports]


def test_the_log_has_the_stages(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    told: list[str] = []

    def load(progress: Progress) -> Engine:
        progress("load talker", 0, 2)
        return FakeEngine()

    def hear(what: str, done: int, total: int) -> None:
        told.append(what)

    engine, scheduler = start_engine(load, SchedulerConfig(), hear)
    assert scheduler.capacity > 0 and told[0] == "load talker" and engine.info.slots
    (record,) = [one for one in caplog.records if one.getMessage() == "engine.started"]
    fields = vars(record)["fields"]
    assert {"import_seconds", "load_seconds", "all_seconds"} <= fields.keys()
    parts = [seconds for stage, seconds in fields.items() if stage != "all_seconds"]
    assert sum(parts) == pytest.approx(fields["all_seconds"], abs=0.01 * len(parts))
