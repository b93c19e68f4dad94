"""The loop in its thread, with the fake engine and the real scheduler."""

import asyncio
import itertools
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.in_process import MAX_FAILURES, InProcessEngine
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.link import (
    Append,
    Audio,
    Cancel,
    Ended,
    Event,
    Failed,
    Finish,
    Open,
    Refused,
    Started,
    Waits,
)
from realtime_tts.engine.loop import EngineLoop
from tests.engine.faulty import Faults, FaultyEngine
from tests.waiting import SECONDS, until
from tts_scheduler import SHORTEST_RETRY, Scheduler, SchedulerConfig, StepPlan

FRAME_BYTES = 3_840


class Listener:
    """Collects events and waits for some of them."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._changed = asyncio.Event()

    def deliver(self, events: list[Event]) -> None:
        self.events.extend(events)
        self._changed.set()

    def of(self, id: str) -> list[Event]:
        return [event for event in self.events if event.id == id]

    def frames(self, id: str) -> int:
        return sum(len(e.pcm) for e in self.of(id) if isinstance(e, Audio)) // FRAME_BYTES

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def over(self, id: str) -> Event:
        final = (Ended, Failed, Refused)
        await self.until(lambda: any(isinstance(e, final) for e in self.of(id)))
        return self.of(id)[-1]


@asynccontextmanager
async def running(
    engine: FakeEngine, guards: GuardConfig | None = None, **scheduler: object
) -> AsyncIterator[tuple[InProcessEngine, Listener]]:
    config = SchedulerConfig(**{"max_start_wait": 0.01, **scheduler})  # type: ignore[arg-type]
    link = InProcessEngine(lambda progress: engine, config, guards=guards)
    listener = Listener()
    link.start(listener.deliver)
    await until(lambda: link.status().ready or link.status().failure)
    try:
        yield link, listener
    finally:
        await link.stop()


def fake(**config: object) -> FaultyEngine:
    return FaultyEngine(FakeEngineConfig(**{"step_seconds": 0.0, **config}))  # type: ignore[arg-type]


def speak(link: InProcessEngine, id: str, tokens: int, voice: str | None = None) -> None:
    link.submit(Open(id, UtteranceSpec(voice=voice)), Append(id, list(range(tokens))), Finish(id))


async def test_text_goes_in_and_all_its_speech_comes_out_once() -> None:
    engine = fake()
    async with running(engine) as (link, listener):
        speak(link, "a", tokens=4)
        assert await listener.over("a") == Ended("a", "complete", 12, 0.0)
        assert isinstance(listener.of("a")[0], Started)
        assert listener.frames("a") == 12
        assert engine.open_utterances == 0


async def test_a_text_submitted_whole_is_always_spoken_in_the_full_text_layout() -> None:
    async with running(fake()) as (link, listener):
        for number in range(50):
            speak(link, f"u{number}", tokens=3)
            await listener.over(f"u{number}")
            begun = listener.of(f"u{number}")[0]
            assert isinstance(begun, Started) and begun.seconds > 0
            assert begun == Started(f"u{number}", "full_text", seconds=begun.seconds)


async def test_a_row_is_held_at_the_end_of_its_text_and_goes_on_with_more() -> None:
    async with running(fake()) as (link, listener):
        link.submit(Open("a", UtteranceSpec()))
        link.submit(Append("a", [1, 2, 3]))
        await listener.until(lambda: listener.frames("a") == 3)
        held_since = time.monotonic()
        speak(link, "b", tokens=4)
        await listener.over("b")
        assert listener.frames("a") == 3, "nothing is padded"
        *sounds, last, waits = listener.of("a")[1:]
        assert waits == Waits("a", 3) and isinstance(last, Audio) and last.stands
        assert not any(sound.stands for sound in sounds if isinstance(sound, Audio))
        held = time.monotonic() - held_since
        link.submit(Append("a", [4]))
        link.submit(Finish("a"))
        ended = await listener.over("a")
        assert isinstance(ended, Ended)
        assert (ended.reason, listener.frames("a")) == ("complete", 12)
        assert ended.held_seconds >= held


async def test_an_utterance_without_text_ends_without_sound() -> None:
    async with running(fake()) as (link, listener):
        speak(link, "a", tokens=0)
        assert await listener.over("a") == Ended("a", "complete", 0, 0.0)


async def test_cancel_frees_the_row_and_silences_it() -> None:
    engine = fake(step_seconds=0.005)
    async with running(engine, slots=1) as (link, listener):
        speak(link, "a", tokens=100)
        await listener.until(lambda: listener.frames("a") > 2)
        link.submit(Cancel("a"))
        link.submit(Cancel("a"))
        speak(link, "b", tokens=1)
        await listener.over("b")
        heard = listener.frames("a")
        speak(link, "c", tokens=1)
        await listener.over("c")
        assert listener.frames("a") == heard
        assert engine.open_utterances == 0


async def test_a_row_with_bad_numbers_fails_alone() -> None:
    engine = fake()
    engine.faults.numerics.add("bad")
    async with running(engine) as (link, listener):
        speak(link, "good", tokens=5)
        speak(link, "bad", tokens=5)
        failed = await listener.over("bad")
        assert isinstance(failed, Failed)
        assert (failed.code, failed.retryable) == ("numerics", True)
        assert await listener.over("good") == Ended("good", "complete", 15, 0.0)


async def test_a_step_that_raises_ends_its_rows_and_the_engine_goes_on() -> None:
    def explode_once(plan: StepPlan) -> None:
        engine.faults.before_step = None
        raise MemoryError("out of memory (injected)")

    engine = fake()
    engine.faults.before_step = explode_once
    async with running(engine) as (link, listener):
        speak(link, "a", tokens=2)
        failed = await listener.over("a")
        assert isinstance(failed, Failed)
        assert failed.code == "engine_error"
        assert "injected" not in failed.message, "details belong in the log"
        speak(link, "b", tokens=2)
        assert isinstance(await listener.over("b"), Ended)


def test_nothing_is_learned_from_the_time_of_a_step_that_raises() -> None:
    def explode(plan: StepPlan) -> None:
        raise MemoryError("out of memory (injected)")

    def publish(events: list[Event]) -> None:
        if any(isinstance(event, Failed) for event in events):
            loop.stop()

    scheduler = Scheduler(SchedulerConfig(max_start_wait=0.0))
    loop = EngineLoop(FaultyEngine(faults=Faults(before_step=explode)), scheduler, publish)
    before = scheduler.cost.costs
    loop.submit(Open("a", UtteranceSpec()), Append("a", [1, 2]), Finish("a"))
    loop.run()
    assert scheduler.cost.costs == before


async def test_an_engine_that_keeps_failing_is_given_up_and_says_so() -> None:
    def explode(plan: StepPlan) -> None:
        raise RuntimeError("device lost (injected)")

    async with running(FaultyEngine(faults=Faults(before_step=explode))) as (link, listener):
        for number in range(MAX_FAILURES):
            speak(link, f"turn-{number}", tokens=2)
            assert isinstance(await listener.over(f"turn-{number}"), Failed)
        await until(lambda: not link.status().ready)
        assert "device lost" in (link.status().failure or "")
        speak(link, "d", tokens=2)
        assert isinstance(await listener.over("d"), Refused)


async def test_turns_end_once_when_an_engine_can_not_even_forget_them() -> None:
    """As on a GPU that was lost: each call for a row with a slot raises."""
    in_step, let_go = asyncio.Event(), threading.Event()
    here = asyncio.get_running_loop()

    def lose(plan: StepPlan) -> None:
        if len(plan.ids) == 2:
            here.call_soon_threadsafe(in_step.set)
            let_go.wait()
            vars(engine)["close"] = lost
            raise OSError("the device is gone (injected)")

    def lost(id: str) -> None:
        raise OSError("the device is gone (injected)")

    engine = FaultyEngine(FakeEngineConfig(step_seconds=0.0), Faults(lose))
    async with running(engine) as (link, listener):
        both = [(Open(id, UtteranceSpec()), Append(id, [1, 2]), Finish(id)) for id in "ab"]
        link.submit(*both[0], *both[1], Open("waits", UtteranceSpec()))
        await in_step.wait()
        let_go.set()
        for id in ("a", "b", "waits"):
            failed = await listener.over(id)
            assert isinstance(failed, Failed) and failed.code == "engine_error", failed
        await until(lambda: link.status().failure)
        assert "the device is gone" in (link.status().failure or "")
        ends = [event.id for event in listener.events if isinstance(event, Failed)]
        assert sorted(ends) == ["a", "b", "waits"]


def test_a_loop_that_sees_that_it_should_stop_knows_why() -> None:
    """It looks from its own thread, at any moment of the call."""

    class Seen(EngineLoop):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "_stopping" and value:
                seen.append(self._end)

    seen: list[tuple[str, str]] = []
    engine = FakeEngine(FakeEngineConfig(step_seconds=0.0))
    Seen(engine, Scheduler(SchedulerConfig()), lambda events: None).stop("why", "because")
    assert seen == [("why", "because")]


async def test_a_turn_that_cannot_be_opened_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what came in the same call as its commands is spoken."""
    engine = fake()
    opened = engine.open

    def open(id: str, *about: Any) -> None:
        if id == "bad":
            raise OSError("its voice cannot be read (injected)")
        opened(id, *about)

    monkeypatch.setattr(engine, "open", open)
    async with running(engine) as (link, listener):
        text = (Append("bad", [1, 2]), Finish("bad"))
        other = (Open("good", UtteranceSpec()), Append("good", [1, 2]), Finish("good"))
        link.submit(Open("bad", UtteranceSpec()), *text, *other)
        failed = await listener.over("bad")
        assert isinstance(failed, Failed) and failed.code == "engine_error", failed
        assert "injected" not in failed.message, "details belong in the log"
        assert isinstance(await listener.over("good"), Ended)
        assert engine.open_utterances == 0


async def test_what_came_with_the_commands_of_a_loop_s_end_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = fake()

    def append(id: str, ids: object) -> None:
        raise OSError("the device is gone (injected)")

    monkeypatch.setattr(engine, "append", append)
    async with running(engine) as (link, listener):
        link.submit(
            *(Open("a", UtteranceSpec()), Append("a", [1])),
            *(Open("b", UtteranceSpec()), Finish("b"), Open("c", UtteranceSpec()), Cancel("c")),
        )
        assert isinstance(await listener.over("a"), Failed)
        refused = await listener.over("b")
        assert isinstance(refused, Refused) and "the device is gone" in refused.message
        assert listener.of("c") == []


async def test_an_engine_that_can_open_nothing_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = fake()

    def open(*about: object) -> None:
        raise OSError("the device is gone (injected)")

    monkeypatch.setattr(engine, "open", open)
    async with running(engine) as (link, listener):
        for number in range(MAX_FAILURES):
            speak(link, f"turn-{number}", tokens=2)
            assert isinstance(await listener.over(f"turn-{number}"), Failed)
        await until(lambda: "the device is gone" in (link.status().failure or ""))


async def test_a_runaway_ends_with_the_guard_s_reason() -> None:
    engine = fake()
    engine.faults.runaway.add("a")
    async with running(engine, GuardConfig(silence_seconds=0.4), lead_cap=60.0) as (link, listener):
        speak(link, "a", tokens=2)
        ended = await listener.over("a")
        assert isinstance(ended, Ended)
        assert ended.reason == "guard_silence"
        # Six frames of speech, five of silence, and what was left of that codec run.
        assert 6 + 5 <= listener.frames("a") < 6 + 5 + 4


async def test_the_longest_turn_ends_with_max_length() -> None:
    async with running(fake(max_frames=7), lead_cap=60.0) as (link, listener):
        speak(link, "a", tokens=50)
        assert await listener.over("a") == Ended("a", "max_length", 7, 0.0)


async def test_beyond_capacity_a_turn_is_refused_at_once_with_a_time_to_retry() -> None:
    """And nothing of it stays open."""
    engine = fake(step_seconds=0.005)
    async with running(engine, slots=1, max_queue=0) as (link, listener):
        speak(link, "a", tokens=50)
        await listener.until(lambda: listener.frames("a") > 0)
        speak(link, "b", tokens=1)
        refused = await listener.over("b")
        assert isinstance(refused, Refused)
        assert refused.code == "overloaded" and refused.retry_after > 0
        assert engine.open_utterances == 1


@pytest.mark.parametrize("seconds", [0.0, 0.1])
async def test_a_turn_that_waited_too_long_for_a_slot_is_refused(seconds: float) -> None:
    """And does not come back at once, even where no turn may wait."""
    async with running(fake(step_seconds=0.005), slots=1, max_queue=2, queue_timeout=seconds) as (
        link,
        listener,
    ):
        speak(link, "a", tokens=200)
        await listener.until(lambda: listener.frames("a") > 0)
        speak(link, "b", tokens=1)
        refused = await listener.over("b")
        assert isinstance(refused, Refused) and refused.retry_after >= SHORTEST_RETRY


async def test_an_unknown_voice_is_refused_by_name() -> None:
    async with running(fake()) as (link, listener):
        speak(link, "a", tokens=1, voice="nobody")
        failed = await listener.over("a")
        assert isinstance(failed, Failed)
        assert failed.code == "bad_request" and "nobody" in failed.message
        assert not failed.retryable


async def test_stopping_ends_what_still_speaks_with_an_error_to_retry() -> None:
    engine = fake(step_seconds=0.005)
    async with running(engine) as (link, listener):
        speak(link, "a", tokens=500)
        await listener.until(lambda: listener.frames("a") > 0)
    await asyncio.sleep(0)
    failed = await listener.over("a")
    assert isinstance(failed, Failed)
    assert (failed.code, failed.retryable) == ("engine_stopped", True)
    assert engine.open_utterances == 0


async def test_a_turn_that_comes_while_the_engine_fails_is_refused() -> None:
    """Its command waits in the queue of a loop that will never look at it."""
    in_last_step, let_go = asyncio.Event(), threading.Event()
    here, steps = asyncio.get_running_loop(), itertools.count(1)

    def fail(plan: StepPlan) -> None:
        if next(steps) == MAX_FAILURES:
            here.call_soon_threadsafe(in_last_step.set)
            let_go.wait()
        raise OSError("the device is gone (injected)")

    engine = FaultyEngine(FakeEngineConfig(step_seconds=0.0), Faults(fail))
    async with running(engine) as (link, listener):
        for number in range(MAX_FAILURES):
            speak(link, f"failing-{number}", tokens=1)
            if number + 1 < MAX_FAILURES:
                await listener.over(f"failing-{number}")
        await in_last_step.wait()
        speak(link, "cancelled", tokens=1)
        speak(link, "late", tokens=1)
        link.submit(Cancel("cancelled"))
        let_go.set()
        refused = await listener.over("late")
        assert isinstance(refused, Refused) and refused.code == "engine_unavailable"
        assert "the device is gone" in refused.message
        assert "the device is gone" in (link.status().failure or "")
        assert listener.of("cancelled") == []


async def test_a_turn_that_comes_while_the_engine_stops_is_refused() -> None:
    async with running(fake()) as (link, listener):
        stopping = asyncio.create_task(link.stop())
        await asyncio.sleep(0)
        speak(link, "late", tokens=1)
        await stopping
        speak(link, "later", tokens=1)
        for id in ("late", "later"):
            assert isinstance(await listener.over(id), Refused | Failed)


async def test_a_checkpoint_that_does_not_load_leaves_a_reason() -> None:
    def load(progress: object) -> FakeEngine:
        raise FileNotFoundError("no such checkpoint (injected)")

    link = InProcessEngine(load, SchedulerConfig())
    listener = Listener()
    link.start(listener.deliver)
    await until(lambda: link.status().failure)
    assert "no such checkpoint" in (link.status().failure or "")
    await link.stop()


def test_what_a_step_made_is_given_away_before_anybody_learns_from_it() -> None:
    """A listener waits for the one, and nobody for the other, which comes before the next plan."""
    done: list[str] = []
    scheduler = Scheduler(SchedulerConfig(max_start_wait=0.0))
    loop = EngineLoop(
        FakeEngine(FakeEngineConfig(step_seconds=0.0)), scheduler, lambda events: None
    )

    def note(owner: object, name: str) -> None:
        call = getattr(owner, name)

        def noted(*arguments: object) -> object:
            done.append(name)
            return call(*arguments)

        setattr(owner, name, noted)

    def publish(events: list[Event]) -> None:
        done.append("publish")
        if any(isinstance(event, Ended) for event in events):
            loop.stop()

    note(scheduler, "learn")
    note(scheduler, "book")
    note(loop, "_step")
    vars(loop)["_publish"] = publish
    loop.submit(Open("a", UtteranceSpec()), Append("a", [1, 2]), Finish("a"))
    loop.run()
    steps = {step.strip() for step in " ".join(done).split("_step ")[1:]}
    assert "book publish learn" in steps
    assert steps <= {"book publish learn", "book learn"}, "a step may make no sound"


async def test_the_engines_thread_gets_the_interpreter_from_a_busy_event_loop_soon() -> None:
    """A step gives it away with each of its operations. With Python's own 5 ms, a server that
    refused 460 turns a second had 25 to 81 underruns in its three turns on the air; with this,
    none."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.005)
    try:
        link = InProcessEngine(lambda progress: FakeEngine(), SchedulerConfig())
        link.start(lambda events: None)
        assert sys.getswitchinterval() == pytest.approx(0.0005)
        await link.stop()
    finally:
        sys.setswitchinterval(before)
