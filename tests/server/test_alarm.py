"""The alarm rings when it should, and only then."""

from __future__ import annotations

import asyncio
import time

import pytest

from realtime_tts.server.alarm import Alarm
from tests.waiting import skip_time

MS = 0.001


@pytest.fixture(autouse=True)
async def skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    skip_time(monkeypatch)


async def test_it_rings_within_the_time_that_was_first_set() -> None:
    rung: list[float] = []
    alarm = Alarm(lambda: rung.append(time.monotonic()))
    await asyncio.sleep(40 * MS)
    assert not rung
    started = time.monotonic()
    alarm.within(20 * MS)
    await asyncio.sleep(10 * MS)
    alarm.within(20 * MS)  # does not begin anew
    await asyncio.sleep(40 * MS)
    assert len(rung) == 1
    assert rung[0] - started < 30 * MS


async def test_an_alarm_rings_at_the_earliest_moment_it_was_set_to() -> None:
    rung: list[float] = []
    alarm = Alarm(lambda: rung.append(time.monotonic()))
    now = time.monotonic()
    for due in (now + 5, None, now + 20 * MS, now + 8):
        alarm.set(due)
    await asyncio.sleep(60 * MS)
    assert len(rung) == 1
    assert rung[0] >= now + 20 * MS - 2 * MS
    alarm.set(time.monotonic() + 10 * MS)  # it can be set again once it has rung
    await asyncio.sleep(40 * MS)
    assert len(rung) == 2


async def test_a_stopped_alarm_is_silent_and_a_past_moment_rings_at_once() -> None:
    rung: list[str] = []
    alarm = Alarm(lambda: rung.append("x"))
    alarm.set(time.monotonic() + 10 * MS)
    alarm.stop()
    await asyncio.sleep(30 * MS)
    assert not rung
    alarm.set(time.monotonic() - 1)
    await asyncio.sleep(10 * MS)
    assert rung == ["x"]
    alarm.within(10 * MS)
    await asyncio.sleep(30 * MS)
    assert rung == ["x", "x"]
