"""Which turn is the reason why engines fail: it ends soon, and no other one does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

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
    Finish,
    Open,
    Started,
    Waits,
)
from realtime_tts.engine.multiprocess import MultiprocessEngine, Supervision
from tests.engine.faulty import Faults, Faulty, FaultyEngine
from tests.engine.test_data_parallel import Scripted
from tests.engine.test_multiprocess import SLOTS, Listener, started
from tests.waiting import skip_time, until
from tts_scheduler import StepPlan

MOST = 5
"""Engines that one turn may end."""


class Mortal(Scripted):
    """An engine that makes a frame of everybody in each of its steps, until `lives` says of an
    utterance that so many frames of it, since the engine began with it, are one too many. Then all
    that it has is lost, and its successor is there. A turn is over after `frames`."""

    def __init__(self, lives: Callable[[str], int | None], frames: int) -> None:
        super().__init__(1_000)
        self.lives, self.frames, self.deaths = lives, frames, 0
        self._made: dict[str, int] = {}
        self._spoken: dict[str, int] = {}
        self._stepping: asyncio.TimerHandle | None = None

    def start(self, deliver: Callable[[list[Event]], None]) -> None:
        super().start(deliver)
        self._step_soon()

    def submit(self, *commands: object) -> None:
        super().submit(*commands)
        for command in commands:
            match command:
                case Open(id, spoken=spoken):
                    self._made[id] = 0
                    self._spoken[id] = 0 if spoken is None else len(spoken.codes) // 32
                case Cancel(id):
                    self._made.pop(id, None)

    async def stop(self) -> None:
        if self._stepping is not None:
            self._stepping.cancel()

    def _step_soon(self) -> None:
        self._stepping = asyncio.get_running_loop().call_later(0.002, self._step)

    def _step(self) -> None:
        self._step_soon()
        told: list[Event] = []
        for id, made in list(self._made.items()):
            most = self.lives(id.split("~")[0])
            if most is not None and made >= most:
                self.deaths += 1
                told += [Failed(each, "engine_restarted", "died", True) for each in self._made]
                self._made.clear()
                break
            told += [Started(id, "streaming")] if not made else []
            told.append(Audio(id, bytes(3_840), codes=bytes(32)))
            self._made[id] = made + 1
            if self._spoken[id] + self._made[id] == self.frames:
                told.append(Ended(id, "complete", self.frames, 0.0))
                del self._made[id]
        if told:
            self.deliver(told)


@contextlib.asynccontextmanager
async def mortal(
    lives: Callable[[str], int | None], frames: int = 80
) -> AsyncIterator[tuple[Listener, Mortal, Failover]]:
    inner = Mortal(lives, frames)
    link = Failover(inner, 30.0)
    with pytest.MonkeyPatch.context() as patch:
        skip_time(patch)
        async with started(link) as heard:
            yield heard, inner, link


@pytest.mark.parametrize("name", ["a-bad", "z-bad"])
@pytest.mark.parametrize("others", [0, 1, 8, 60])
@pytest.mark.parametrize("most", [0, 1, 2, 11])
async def test_a_turn_under_which_engines_end_fails_and_the_others_are_spoken(
    most: int, others: int, name: str
) -> None:
    """Whether it has come to a frame, or to a few, whenever an engine takes it up."""
    async with mortal(lambda id: most if id == name else None) as (heard, engine, _):
        good = [f"good-{number:02}" for number in range(others)]
        for id in [*good, name]:
            heard.speak(id, 13)
        failed = await heard.over(name)
        assert isinstance(failed, Failed), failed
        assert (failed.code, failed.retryable) == ("engine_restarted", False)
        assert "do not send its text again" in failed.message
        assert engine.deaths == MOST
        for id in good:
            end = await heard.over(id)
            assert isinstance(end, Ended) and end.frames == 80, end
            sound = [event for event in heard.of(id) if isinstance(event, Audio)]
            assert len(sound) == 80


async def test_two_such_turns_at_once_take_no_other_along() -> None:
    most = {"bad-1": 1, "bad-2": 2}
    async with mortal(most.get) as (heard, engine, _):
        good = [f"good-{number}" for number in range(6)]
        for id in [*good, *most]:
            heard.speak(id, 13)
        assert all([isinstance(await heard.over(id), Failed) for id in most])
        assert all([isinstance(await heard.over(id), Ended) for id in good])
        assert engine.deaths <= 2 * MOST


async def test_a_long_speech_may_lose_its_engine_as_often_as_it_likes() -> None:
    """As long as engines speak a second of it, which is thirteen frames."""
    async with mortal(lambda id: 14, frames=400) as (heard, engine, _):
        for id in ("a", "b"):
            heard.speak(id, 133)
        ends = [await heard.over(id) for id in ("a", "b")]
        assert all(isinstance(end, Ended) and end.frames == 400 for end in ends), ends
        assert engine.deaths > 4 * MOST


async def test_a_turn_that_waits_for_text_is_never_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No engine has done anything for it."""
    skip_time(monkeypatch)
    inner = Scripted(8)
    link, told = Failover(inner, 30.0), list[Event]()
    link.start(told.extend)
    link.submit(Open("a", UtteranceSpec()), Append("a", [1, 2]))
    inner.deliver([Started("a", "streaming"), Audio("a", bytes(3_840)), Waits("a", 2)])
    for number in range(2 * MOST):
        (*_, name) = inner.opened()
        inner.deliver([Failed(name, "engine_restarted", "died", True)])
        await until(lambda number=number: len(inner.opened()) == number + 2)  # type: ignore[misc]
    assert not any(isinstance(event, Failed) for event in told)
    link.submit(Append("a", [3]), Finish("a"))
    for number in range(2 * MOST, 3 * MOST):
        (*_, name) = inner.opened()
        inner.deliver([Failed(name, "engine_restarted", "died", True)])
        if number < 3 * MOST - 1:
            await until(lambda number=number: len(inner.opened()) == number + 2)  # type: ignore[misc]
    assert isinstance(told[-1], Failed)
    await link.stop()


async def test_nobody_else_is_tried_while_an_engine_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be hanging of the one that is tried; its end says so ten seconds later."""
    skip_time(monkeypatch)
    inner = Scripted(8)
    link, told = Failover(inner, 30.0), list[Event]()
    link.start(told.extend)
    link.submit(*(Open(id, UtteranceSpec()) for id in "ab"))
    for life in range(2):
        names = inner.opened()[-2:]
        inner.deliver([Failed(name, "engine_restarted", "died", True) for name in names])
        await until(lambda life=life: len(inner.opened()) > 2 + 2 * life)  # type: ignore[misc]
        await asyncio.sleep(0.05)
    assert inner.opened() == ["a", "b", "a~1", "b~1", "a~2"]
    inner.state = EngineStatus(True, 1, 0, 0, 8, 0.0, silence=1.0)
    await asyncio.sleep(1.3)
    assert inner.opened()[-1] == "a~2"
    inner.state = EngineStatus(True, 1, 0, 0, 8, 0.0)
    inner.deliver([Audio("a~2", bytes(3_840))])
    await until(lambda: inner.opened()[-1] == "b~2")
    await link.stop()


async def test_a_turn_that_silences_engines_after_a_frame_of_each_silences_five_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It leaves two of them; for the others' end it waits."""
    skip_time(monkeypatch)
    live, silent = (EngineStatus(True, 1, 0, 0, 8, 0.0, silence=each) for each in (0.0, 1.0))
    engines = [Scripted(8), Scripted(8)]
    link, told = Failover(DataParallelEngines(engines), 30.0), list[Event]()
    link.start(told.extend)
    link.submit(Open("a", UtteranceSpec()))

    def frame() -> Scripted:
        """One of its frames; the engine that made it, which is silent then."""
        (one,) = (one for one in engines if one.opened()[-1:] == [f"a~{life}" if life else "a"])
        one.deliver([Audio(one.opened()[-1], bytes(3_840), codes=bytes(32))])
        one.state = silent
        return one

    for life in range(MOST):
        await until(lambda: sum(len(one.opened()) for one in engines) == life + 1)  # noqa: B023
        engine = frame()
        if life >= 2:
            await asyncio.sleep(1.3)
            assert sum(len(one.opened()) for one in engines) == life + 1, "it stays"
            engine.deliver([Failed(engine.opened()[-1], "engine_restarted", "hung", True)])
        else:
            await until(lambda: sum(len(one.opened()) for one in engines) == life + 2)  # noqa: B023
        engine.state = live
    assert isinstance(told[-1], Failed) and not told[-1].retryable
    await link.stop()


async def test_a_text_that_ends_its_processes_after_some_frames_leaves_the_server_an_engine() -> (
    None
):
    """With as many restarts as a server has."""
    quick = Supervision(first_delay=0.02, longest_delay=0.02, tick_seconds=0.05)
    config = FakeEngineConfig(step_seconds=0.005)
    inner = MultiprocessEngine(Faulty(config), SLOTS, supervision=quick)
    async with started(Failover(inner, 30.0)) as heard:
        for number in range(3):
            heard.speak(f"good-{number}", 30)
        await until(lambda: all(heard.of(f"good-{number}") for number in range(3)))
        heard.speak("third", 30)
        failed = await heard.over("third")
        assert isinstance(failed, Failed) and not failed.retryable, failed
        ends = [await heard.over(f"good-{number}") for number in range(3)]
        assert all(isinstance(end, Ended) and end.frames == 90 for end in ends), ends
        heard.speak("next", 3)
        assert isinstance(await heard.over("next"), Ended)
        assert inner.status().failure is None


@pytest.mark.parametrize("others", [0, 3])
async def test_a_turn_whose_decode_steps_raise_fails_and_a_thread_s_engine_lives(
    others: int,
) -> None:
    def bad(plan: StepPlan) -> None:
        if any(decode.id.startswith("bad") for decode in plan.decodes):
            raise RuntimeError("illegal memory access (injected)")

    engine = FaultyEngine(FakeEngineConfig(step_seconds=0.002), Faults(before_step=bad))
    inner = InProcessEngine(lambda progress: engine, SLOTS)
    async with started(Failover(inner, 30.0)) as heard:
        good = [f"good-{number}" for number in range(others)]
        for id in [*good, "bad"]:
            heard.speak(id, 30)
        failed = await heard.over("bad")
        assert isinstance(failed, Failed) and failed.code == "engine_error", failed
        ends = [await heard.over(id) for id in good]
        assert all(isinstance(end, Ended) and end.frames == 90 for end in ends), ends
        heard.speak("next", 3)
        assert isinstance(await heard.over("next"), Ended)


async def test_an_engine_in_a_thread_none_of_whose_decode_steps_works_is_given_up() -> None:
    """Prefills that work are no reason to go on with it."""

    def broken(plan: StepPlan) -> None:
        if plan.decodes:
            raise RuntimeError("illegal memory access (injected)")

    engine = FaultyEngine(FakeEngineConfig(step_seconds=0.0), Faults(before_step=broken))
    inner = InProcessEngine(lambda progress: engine, SLOTS)
    async with started(Failover(inner, 30.0)) as heard:
        for number in range(4):
            heard.speak(f"turn-{number}", 30)
        await until(lambda: inner.status().failure)
        assert all([isinstance(await heard.over(f"turn-{number}"), Failed) for number in range(4)])
