"""Engine processes that are killed or stopped while turns are live: nothing is lost or different.

`make test-attacks` does the same more often, `python -m tests.engine.killing` a thousand times.
"""

from __future__ import annotations

import os
import signal

import pytest

from realtime_tts.engine.failover import Failover
from realtime_tts.engine.fake import FakeEngineConfig
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.link import Append, Audio, Cancel, Ended, Event, Failed, Finish, Open
from realtime_tts.engine.multiprocess import MultiprocessEngine
from tests.engine.faulty import Faulty
from tests.engine.killing import WATCHED, disturbed
from tests.engine.test_multiprocess import SLOTS, Listener, started
from tests.waiting import until


@pytest.mark.parametrize(("kind", "engines"), [("fake", 1), ("fake", 2), ("light", 1)])
async def test_turns_outlive_engines_at_random_moments(kind: str, engines: int) -> None:
    """Each start of a real one takes two seconds. The demo voice's die in `make test-attacks`."""
    signals = [signal.SIGKILL, signal.SIGSTOP]
    moments = 4 if kind == "fake" else 1
    found = await disturbed(kind, engines, moments, live=3, seed=engines, signals=signals)
    assert (found.moments, found.lost, found.different) == (moments, 0, 0)
    assert found.moves > 0


def processes(**fake: object) -> MultiprocessEngine:
    config = FakeEngineConfig(step_seconds=0.01, **fake)  # type: ignore[arg-type]
    return MultiprocessEngine(Faulty(config), SLOTS, supervision=WATCHED)


async def test_text_and_ends_that_come_between_engines_are_kept_in_order() -> None:
    inner = processes()
    link = Failover(inner, 30.0)
    async with started(link) as heard:
        heard.speak("whole", 20)
        whole = await heard.over("whole")
        link.submit(Open("a", UtteranceSpec(layout="streaming")), Append("a", list(range(12))))
        await until(lambda: sum(isinstance(event, Audio) for event in heard.of("a")) > 3)
        os.kill(inner.pid or 0, signal.SIGKILL)
        await until(lambda: not inner.status().ready)
        link.submit(Append("a", list(range(12, 17))))
        link.submit(Append("a", list(range(17, 20))), Finish("a"))
        ended = await heard.over("a")
        assert isinstance(whole, Ended) and isinstance(ended, Ended)
        assert (ended.reason, ended.frames) == (whole.reason, whole.frames)
        assert sound(heard, "a") == sound(heard, "whole")


async def test_a_turn_that_is_cancelled_between_engines_is_not_opened_again() -> None:
    inner = processes()
    link = Failover(inner, 30.0)
    async with started(link) as heard:
        heard.speak("a", 200)
        heard.speak("b", 20)
        await until(lambda: heard.of("a") and heard.of("b"))
        os.kill(inner.pid or 0, signal.SIGKILL)
        await until(lambda: not inner.status().ready)
        link.submit(Cancel("a"))
        count = len(heard.of("a"))
        assert isinstance(await heard.over("b"), Ended)
        assert len(heard.of("a")) == count and inner.open_utterances == 0


async def test_a_turn_that_ends_every_engine_fails_and_takes_no_other_along() -> None:
    inner = processes()
    link = Failover(inner, 30.0)
    async with started(link) as heard:
        for number in range(3):
            heard.speak(f"good-{number}", 30)
        await until(lambda: all(heard.of(f"good-{number}") for number in range(3)))
        heard.speak("segv", 5)
        failed = await heard.over("segv")
        assert isinstance(failed, Failed) and failed.code == "engine_restarted"
        ends = [await heard.over(f"good-{number}") for number in range(3)]
        assert all(isinstance(end, Ended) and end.frames == 90 for end in ends), ends


async def test_no_engine_within_the_stated_time_and_the_turn_fails() -> None:
    inner = processes()
    link = Failover(inner, 0.02)  # no process starts in less
    async with started(link) as heard:
        heard.speak("a", 200)
        await until(lambda: heard.of("a"))
        os.kill(inner.pid or 0, signal.SIGKILL)
        failed = await heard.over("a")
        assert isinstance(failed, Failed) and failed.code == "engine_restarted"
        assert "send its text again" in failed.message


def sound(heard: Listener, id: str) -> bytes:
    events: list[Event] = heard.of(id)
    return b"".join(event.pcm for event in events if isinstance(event, Audio))
