"""Turns that leave an engine that still lives: processes that stop, wake up, or are to be stopped.

The decision alone is in test_moves.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
import time
from collections.abc import AsyncIterator, Iterable

import pytest
from msgspec.structs import replace

from realtime_tts.engine.data_parallel import DataParallelEngines
from realtime_tts.engine.failover import Failover
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.link import (
    Append,
    Audio,
    Cancel,
    Ended,
    EngineStatus,
    Event,
    Failed,
    Open,
    Refused,
    Started,
    Stranded,
    Waits,
    Why,
)
from realtime_tts.engine.moves import LEAD, is_silent
from realtime_tts.engine.multiprocess import MultiprocessEngine, Supervision
from tests.engine.faulty import Faulty
from tests.engine.killing import WATCHED
from tests.engine.test_data_parallel import Scripted
from tests.engine.test_multiprocess import Listener, started
from tests.waiting import skip_time, until
from tts_scheduler import SchedulerConfig

LIVELY = SchedulerConfig(slots=64, max_start_wait=0.01, utilisation=1_000.0, lead_cap=1.5)
PATIENT = Supervision(hang_seconds=30.0, first_delay=0.05, tick_seconds=0.05)


class Two(DataParallelEngines):
    """Two engines. Notes what was found whenever somebody looked which turns are to leave one."""

    def __init__(
        self, scheduling: SchedulerConfig = LIVELY, supervision: Supervision = PATIENT
    ) -> None:
        load = Faulty(FakeEngineConfig(step_seconds=0.005))
        self.links = [
            MultiprocessEngine(load, scheduling, supervision=supervision) for _ in range(2)
        ]
        super().__init__(self.links)
        self.found: list[list[Stranded]] = []

    def stranded(self) -> list[Stranded]:
        self.found.append(super().stranded())
        return self.found[-1]

    async def looked(self, times: int = 3) -> None:
        """Wait until somebody has looked so many times more."""
        looks = len(self.found) + times
        await until(lambda: len(self.found) >= looks)


@contextlib.asynccontextmanager
async def two(
    scheduling: SchedulerConfig = LIVELY, supervision: Supervision = PATIENT
) -> AsyncIterator[tuple[Listener, Two, Failover]]:
    engines = Two(scheduling, supervision)
    link = Failover(engines, 30.0)
    async with started(link) as heard:
        yield heard, engines, link


def sound(heard: Listener, id: str) -> bytes:
    return b"".join(event.pcm for event in heard.of(id) if isinstance(event, Audio))


async def undisturbed(tokens: int) -> bytes:
    """The sound of such a turn in an engine of its own, which makes it as fast as it can."""
    config = dataclasses.replace(LIVELY, lead_cap=60.0)
    async with started(InProcessEngine(Faulty(), config)) as heard:
        heard.speak("whole", tokens)
        await heard.over("whole")
        return sound(heard, "whole")


def moves(heard: Listener, id: str) -> int:
    return sum(event.moved for event in heard.of(id) if isinstance(event, Started))


def heard_of(heard: Listener, ids: list[str]) -> bool:
    return all(sound(heard, id) for id in ids)


def run_dry(link: Failover, ids: Iterable[str]) -> bool:
    """Whether their listeners have so little sound left that they would leave a silent engine."""
    now = time.monotonic()
    return all(link._open[id].lead(now) <= LEAD for id in ids)


async def test_an_engine_that_stops_for_a_while_loses_its_turns_and_nobody_kills_it() -> None:
    """What it makes when it wakes up is heard of nobody, and it takes turns again."""
    async with two() as (heard, engines, _):
        ids = [f"turn-{number}" for number in range(6)]
        for id in ids:
            heard.speak(id, 15)
        await until(lambda: heard_of(heard, ids))
        stopped = engines.links[0]
        pid, there = stopped.pid, stopped.open_utterances
        assert pid is not None and there == 3
        os.kill(pid, signal.SIGSTOP)
        await until(lambda: sum(moves(heard, id) for id in ids) == there)
        os.kill(pid, signal.SIGCONT)
        ends = [await heard.over(id) for id in ids]
        assert all(isinstance(end, Ended) and end.frames == 45 for end in ends), ends
        assert {sound(heard, id) for id in ids} == {await undisturbed(15)}
        assert stopped.pid == pid
        for number in range(4):
            heard.speak(f"next-{number}", 3)
        await until(lambda: stopped.open_utterances == 2)
        for number in range(4):
            assert isinstance(await heard.over(f"next-{number}"), Ended)


async def test_a_turn_that_waits_for_text_stays_until_its_text_comes() -> None:
    async with two() as (heard, engines, link):
        link.submit(Open("a", UtteranceSpec(layout="streaming")), Append("a", [1, 2, 3, 4]))
        await until(lambda: any(isinstance(event, Waits) for event in heard.of("a")))
        made = len(sound(heard, "a"))
        (owner,) = (each for each in engines.links if each.open_utterances)
        os.kill(owner.pid or 0, signal.SIGSTOP)
        await until(lambda: run_dry(link, "a") and engines.stranded())
        await engines.looked()
        assert engines.found[-1][0].ids == ["a"] and moves(heard, "a") == 0
        link.submit(Append("a", [5, 6]))
        await until(lambda: moves(heard, "a") == 1)
        await until(lambda: len(sound(heard, "a")) > made)
        link.submit(Cancel("a"))
        os.kill(owner.pid or 0, signal.SIGCONT)  # it stops sooner


async def test_without_room_elsewhere_turns_stay_where_they_are() -> None:
    async with two(dataclasses.replace(LIVELY, slots=2)) as (heard, engines, link):
        ids = [f"turn-{number}" for number in range(4)]
        for id in ids:
            heard.speak(id, 12)
        await until(lambda: heard_of(heard, ids))
        stopped, there = engines.links[0], ids[::2]
        assert stopped.open_utterances == len(there)
        os.kill(stopped.pid or 0, signal.SIGSTOP)
        await until(lambda: is_silent(stopped.status()) and run_dry(link, there))
        await engines.looked()
        assert sum(moves(heard, id) for id in ids) == 0
        os.kill(stopped.pid or 0, signal.SIGCONT)
        ends = [await heard.over(id) for id in ids]
        assert all(isinstance(end, Ended) and end.frames == 36 for end in ends), ends


async def test_a_text_that_hangs_every_engine_fails_and_takes_no_other_along() -> None:
    async with two(supervision=WATCHED) as (heard, _, _):
        for number in range(3):
            heard.speak(f"good-{number}", 30)
        await until(lambda: heard_of(heard, [f"good-{number}" for number in range(3)]))
        heard.speak("hang", 5)
        ends = [await heard.over(f"good-{number}") for number in range(3)]
        assert all(isinstance(end, Ended) and end.frames == 90 for end in ends), ends
        await until(lambda: any(isinstance(event, Failed) for event in heard.of("hang")), 60)
        failed = heard.of("hang")[-1]
        assert isinstance(failed, Failed) and failed.code == "engine_restarted"


async def test_turns_leave_an_engine_that_is_told_to_make_room_for_its_successor() -> None:
    """At once and without a gap; then its process ends, and the next one takes turns."""
    async with two() as (heard, engines, _):
        ids = [f"turn-{number}" for number in range(6)]
        for id in ids:
            heard.speak(id, 20)  # for five seconds
        await until(lambda: heard_of(heard, ids))
        leaving = engines.links[0]
        pid = leaving.pid
        told = time.monotonic()
        os.kill(pid or 0, signal.SIGUSR1)
        await until(lambda: leaving.open_utterances == 0)
        await until(lambda: leaving.pid not in (None, pid) and leaving.status().ready)
        assert time.monotonic() - told < 15
        ends = [await heard.over(id) for id in ids]
        assert all(isinstance(end, Ended) and end.frames == 60 for end in ends), ends
        assert {sound(heard, id) for id in ids} == {await undisturbed(20)}
        assert sum(moves(heard, id) for id in ids) == 3


async def test_an_engine_without_another_ends_with_its_turns_after_a_while() -> None:
    """They go on with its successor."""
    load = Faulty(FakeEngineConfig(step_seconds=0.005))
    inner = MultiprocessEngine(load, LIVELY, supervision=PATIENT)
    async with started(Failover(inner, 30.0)) as heard:
        heard.speak("a", 32)
        await until(lambda: sound(heard, "a"))
        pid = inner.pid
        os.kill(pid or 0, signal.SIGUSR1)
        ended = await heard.over("a")
        assert isinstance(ended, Ended) and ended.frames == 96
        assert moves(heard, "a") == 1 and inner.pid not in (None, pid)


async def test_an_engine_that_comes_back_takes_what_the_other_has_too_much_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only turns that are late, and no more than it has room for."""
    skip_time(monkeypatch)
    full, back = Scripted(2), Scripted(4)
    back.state = EngineStatus(False, 0, 0, 0, 0, 0.0)
    link, events = Failover(DataParallelEngines([full, back]), 30.0), list[Event]()
    link.start(events.extend)
    for id in "abcd":
        link.submit(Open(id, UtteranceSpec()))
    full.deliver([Audio(id, bytes(2 * 24_000 * (30 if id == "d" else 5))) for id in "abcd"])
    await asyncio.sleep(0.3)
    assert back.opened() == []
    back.state = EngineStatus(True, 0, 0, 0, 4, 0.0)
    await asyncio.sleep(0.3)
    assert back.opened() == [], "nobody is late"
    await until(lambda: len(back.opened()) == 2, 10)
    await asyncio.sleep(0.5)
    assert len(back.opened()) == 2 and "d~1" not in back.opened()
    back.deliver([replace(Started(id, "streaming")) for id in back.opened()])
    assert [event.id for event in events if isinstance(event, Started)] == [
        id.removesuffix("~1") for id in back.opened()
    ]
    count = len(events)
    full.deliver([Audio(id.removesuffix("~1"), bytes(960)) for id in back.opened()])
    assert len(events) == count, "what the first engine still says concerns nobody"
    await link.stop()


class Leaving(Scripted):
    """A link with turns that are to leave."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self.leaving: list[str] = []

    def stranded(self) -> list[Stranded]:
        ids, self.leaving = self.leaving, []
        return [Stranded(Why.LEAVING, ids, len(ids))] if ids else []


async def test_a_turn_that_moves_again_before_it_was_heard_waits_for_an_engine_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    skip_time(monkeypatch)
    engine = Leaving(4)
    link, events = Failover(engine, 30.0), list[Event]()
    link.start(events.extend)
    link.submit(Open("a", UtteranceSpec()))
    engine.leaving = ["a"]
    await until(lambda: engine.opened() == ["a", "a~1"])
    await asyncio.sleep(60.0)  # its text has not come
    engine.leaving = ["a~1"]
    await until(lambda: engine.opened() == ["a", "a~1", "a~2"])
    engine.deliver([Refused("a~2", "overloaded", "full", 1.0)])
    await until(lambda: engine.opened() == ["a", "a~1", "a~2", "a~3"])
    assert events == []
    await link.stop()
