"""The two timers."""

from __future__ import annotations

import asyncio
import time

from realtime_tts.server.deadline import Alarm, Deadline

MS = 0.001


async def test_a_deadline_fires_once_and_only_if_armed() -> None:
    fired: list[float] = []
    loop = asyncio.get_running_loop()
    deadline = Deadline(loop, 20 * MS, lambda: fired.append(loop.time()))
    await asyncio.sleep(40 * MS)
    assert not fired
    started = loop.time()
    deadline.arm()
    await asyncio.sleep(10 * MS)
    deadline.arm()  # does not begin anew
    await asyncio.sleep(40 * MS)
    assert len(fired) == 1
    assert fired[0] - started < 30 * MS


async def test_a_disarmed_deadline_does_not_fire_and_can_be_armed_again() -> None:
    fired: list[str] = []
    deadline = Deadline(asyncio.get_running_loop(), 10 * MS, lambda: fired.append("x"))
    deadline.arm()
    deadline.disarm()
    await asyncio.sleep(30 * MS)
    assert not fired
    deadline.arm()
    await asyncio.sleep(30 * MS)
    assert fired == ["x"]


async def test_an_alarm_rings_at_the_earliest_moment_it_was_set_to() -> None:
    rung: list[float] = []
    alarm = Alarm(time.monotonic, lambda: rung.append(time.monotonic()))
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
    alarm = Alarm(time.monotonic, lambda: rung.append("x"))
    alarm.set(time.monotonic() + 10 * MS)
    alarm.stop()
    await asyncio.sleep(30 * MS)
    assert not rung
    alarm.set(time.monotonic() - 1)
    await asyncio.sleep(10 * MS)
    assert rung == ["x"]
