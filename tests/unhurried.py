"""Engines in the process of a test that asks what is said, and not when.

They do not warm up, and all rows that have text are in every step. On a slow machine the usual
scheduler lets a turn start only when that costs no listener a gap. Most steps then have one row,
and a row among eight takes half the time of one alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from realtime_tts.engine import startup
from realtime_tts.engine.interface import Engine, Progress
from tts_scheduler import CostModel, Scheduler, SchedulerConfig
from tts_scheduler.policy import ARRIVAL_ORDER


@contextmanager
def unhurried() -> Iterator[None]:
    """Engines that start meanwhile are like that, but for those in processes of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(startup, "taught_scheduler", _scheduler)
        yield


def _scheduler(engine: Engine, config: SchedulerConfig, progress: Progress) -> Scheduler:
    config = replace(config, slots=min(config.slots, engine.info.slots))
    return Scheduler(config, CostModel(), ARRIVAL_ORDER, engine.kv_cache)
