"""One engine process and several fronts: whose utterances are whose, and what one front's end, or
the engine's, means to the others."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import AsyncIterator

from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.engine import wire
from realtime_tts.engine.addresses import Addresses
from realtime_tts.engine.fake import FakeEngine
from realtime_tts.engine.fronts import Fronts
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
)
from realtime_tts.engine.links import shared_links
from realtime_tts.engine.multiprocess import MultiprocessEngine
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.engine.shared import SharedEngine
from tests.engine.faulty import Faulty
from tests.engine.test_multiprocess import QUICK, SLOTS, Listener
from tests.waiting import until

READY = wire.Ready(FakeEngine().info, 16)


class Line:
    """Notes what one front is told."""

    def __init__(self) -> None:
        self.told: list[wire.Up] = []
        self.closed = False

    def send(self, message: wire.Up) -> None:
        assert not self.closed, "nothing is sent on a closed line"
        self.told.append(message)

    def close(self, linger: float = 0.0) -> None:
        self.closed = True

    @property
    def events(self) -> list[Event]:
        return [
            one for heard in self.told if isinstance(heard, wire.Happened) for one in heard.events
        ]


FRONT = st.integers(1, 3)
ID = st.sampled_from(["a", "1/a", "2/a", "/a", ""])
"""Ids that look like another front's are the ones to meet it."""
DEED = st.one_of(
    st.tuples(st.just("open"), FRONT, ID),
    st.tuples(st.just("audio"), FRONT, ID),
    st.tuples(st.just("end"), FRONT, ID),
    st.tuples(st.just("cancel"), FRONT, ID),
    st.tuples(st.just("leave"), FRONT, st.just("")),
)


@given(st.lists(DEED, max_size=40))
def test_ids_of_two_fronts_never_meet(deeds: list[tuple[str, int, str]]) -> None:
    """Whatever ids they choose: the engine has one utterance for each that a front has open, and
    every front gets the events of its own, by the ids it chose."""
    lines = {front: Line() for front in (1, 2, 3)}
    fronts = Fronts()
    assert [fronts.join(line, READY) for line in lines.values()] == list(lines)
    names: dict[tuple[int, str], str] = {}  # what the engine calls the open utterances
    expected: dict[int, list[Event]] = {1: [], 2: [], 3: []}
    gone: set[int] = set()
    for deed, front, id in deeds:
        key = front, id
        if front in gone:
            continue
        match deed:
            case "open" if key not in names:
                (command,) = fronts.commands(front, [Open(id, UtteranceSpec())])
                assert command.id not in names.values()
                names[key] = command.id
            case "audio" if key in names:
                assert fronts.publish([Audio(names[key], b"s")]) == []
                expected[front].append(Audio(id, b"s"))
            case "end" if key in names:
                fronts.publish([Ended(names.pop(key), "complete", 1, 0.0)])
                expected[front].append(Ended(id, "complete", 1, 0.0))
            case "cancel" if key in names:
                (command,) = fronts.commands(front, [Cancel(id)])
                name = names.pop(key)
                assert command == Cancel(name)
                fronts.publish([Audio(name, b"s")])  # was under way: nobody gets it
            case "leave":
                own = {key for key in names if key[0] == front}
                assert {one.id for one in fronts.leave(front)} == {names.pop(key) for key in own}
                gone.add(front)
    assert {front: line.events for front, line in lines.items()} == expected
    fronts.heartbeat(wire.Heartbeat(EngineStatus(True)))
    for front in lines.keys() - gone:
        beat = lines[front].told[-1]
        assert isinstance(beat, wire.Heartbeat)
        assert beat.status.others == sum(owner != front for owner, _ in names)


def test_the_parent_is_told_what_is_its_own_and_nothing_else() -> None:
    line, fronts = Line(), Fronts()
    alone: list[Event] = [Started("a", "streaming")]
    assert fronts.publish(alone) is alone, "with one front there is no other layer"
    front = fronts.join(line, READY)
    (opened,) = fronts.commands(front, [Open("a", UtteranceSpec())])
    assert fronts.publish([Audio("a", b"1"), Audio(opened.id, b"2")]) == [Audio("a", b"1")]
    assert line.events == [Audio("a", b"2")]


class Shared:
    """An engine process, its parent, and fronts that share it."""

    def __init__(self) -> None:
        self.parent = MultiprocessEngine(
            Faulty(), SLOTS, supervision=QUICK, on_addresses=self._told
        )
        self.links: dict[int, SharedEngine] = {}

    def _told(self, addresses: Addresses | None) -> None:
        for link in self.links.values():
            self._tell(link, addresses)

    def _tell(self, link: SharedEngine, addresses: Addresses | None) -> None:
        if addresses is None:
            link.lost(self.parent.status().failure)
        else:
            link.found(addresses)

    async def front(self, number: int) -> Listener:
        link = self.links[number] = SharedEngine("engine")
        listener = Listener(link)
        link.start(listener.events.extend)
        if self.parent.addresses is not None:
            link.found(self.parent.addresses)
        await until(lambda: link.status().ready)
        return listener


@contextlib.asynccontextmanager
async def shared() -> AsyncIterator[Shared]:
    made = Shared()
    made.parent.start(lambda events: None)
    try:
        await until(lambda: made.parent.status().ready)
        yield made
    finally:
        for link in made.links.values():
            await link.stop()
        await made.parent.stop()


def sound(events: list[Event]) -> bytes:
    return b"".join(event.pcm for event in events if isinstance(event, Audio))


async def test_fronts_that_choose_the_same_ids_hear_their_own_utterances() -> None:
    async with shared() as engine:
        fronts = [await engine.front(1), await engine.front(2)]
        for front, tokens in zip(fronts, (3, 9), strict=True):
            front.speak("a", tokens)
        for front in fronts:
            assert isinstance(await front.over("a"), Ended)
            assert {event.id for event in front.events} == {"a"}
        assert len(sound(fronts[0].events)) < len(sound(fronts[1].events))
        await until(lambda: engine.parent.status().active == 0)


async def test_steps_of_other_fronts_turns_reach_the_parent_with_the_heartbeat() -> None:
    """All of them, and no message of their own wakes it after each."""
    async with shared() as engine:
        told: list[wire.Up] = []
        health = engine.parent._health
        heard = health.heard

        def note(message: wire.Up) -> None:
            told.append(message)
            heard(message)

        health.heard = note  # type: ignore[method-assign]
        front = await engine.front(1)
        opened = Open("a", UtteranceSpec(), lead_cap=1_000.0)
        engine.links[1].submit(opened, Append("a", [1] * 100), Finish("a"))
        ended = await front.over("a")
        assert isinstance(ended, Ended)

        def happened() -> list[wire.Happened]:
            return [one for one in told if isinstance(one, wire.Happened)]

        def rows() -> int:
            steps = [step for one in happened() for step in one.steps]
            return sum(step.prefills + step.decodes for step in steps)

        await until(lambda: rows() >= ended.frames)
        assert not any(one.events for one in happened())
        beats = sum(isinstance(one, wire.Heartbeat) for one in told)
        assert len(happened()) <= beats + 1


async def test_each_front_knows_what_the_others_have_open() -> None:
    async with shared() as engine:
        one, two = await engine.front(1), await engine.front(2)
        for number in range(3):
            one.speak(f"a{number}", 400)
        two.speak("b", 400)
        await until(lambda: engine.links[1].status().others == 1)
        await until(lambda: engine.links[2].status().others == 3)
        await until(lambda: engine.links[2].status().active == 4)


async def test_a_front_that_ends_has_its_utterances_cancelled_and_nobody_else_notices() -> None:
    async with shared() as engine:
        await engine.front(1)
        stays = await engine.front(2)
        for number in range(8):
            engine.links[1].submit(
                Open(f"a{number}", UtteranceSpec()), Append(f"a{number}", [1] * 400)
            )
        stays.speak("b", 20)
        await until(lambda: engine.links[2].status().active == 9)
        killed = engine.links.pop(1)
        assert killed._channel is not None
        killed._channel.close()  # it says nothing, nor does the parent
        assert isinstance(await stays.over("b"), Ended)
        await until(lambda: engine.links[2].status().active == 0)
        assert engine.links[2].status().others == 0
        await killed.stop()


async def test_a_front_knows_that_the_engine_has_ended_before_anybody_tells() -> None:
    async with shared() as engine:
        front = await engine.front(1)
        front.speak("a", 400)
        await until(lambda: front.of("a"))
        link = engine.links.pop(1)  # the parent tells it nothing any more
        os.kill(engine.parent.pid or 0, signal.SIGKILL)
        failed = await front.over("a")
        assert isinstance(failed, Failed) and failed.code == "engine_restarted"
        assert not link.status().ready
        await link.stop()


async def test_an_engine_that_dies_fails_the_turns_of_all_fronts_and_serves_them_again() -> None:
    async with shared() as engine:
        fronts = [await engine.front(1), await engine.front(2)]
        for front in fronts:
            front.speak("a", 400)
        await until(lambda: all(front.of("a") for front in fronts))
        os.kill(engine.parent.pid or 0, signal.SIGKILL)
        for front in fronts:
            failed = await front.over("a")
            assert isinstance(failed, Failed) and failed.code == "engine_restarted"
        await until(lambda: all(link.status().ready for link in engine.links.values()))
        for front in fronts:
            front.speak("b", 3)
            assert isinstance(await front.over("b"), Ended)


async def test_a_front_that_comes_while_the_engine_loads_waits_for_it() -> None:
    made = Shared()
    made.parent.start(lambda events: None)
    try:
        await until(lambda: made.parent.addresses is not None)
        assert not made.parent.status().ready
        front = await made.front(1)
        front.speak("a", 3)
        assert isinstance(await front.over("a"), Ended)
    finally:
        await made.links[1].stop()
        await made.parent.stop()


def test_a_front_that_starts_late_needs_one_of_the_engines_and_knows_them_all() -> None:
    info = FakeEngine().info
    config = EngineConfig(kind="fake", devices=("cpu", "cpu"))
    link, (first, second) = shared_links([config], [info, info])
    link.start(lambda events: None)
    second.lost("gone for good")
    assert link.status().failure is None and link.info.slots == 2 * info.slots
    link.check(UtteranceSpec(voice=info.voices[0]))
    first.lost("gone as well")
    assert link.status().failure == "gone as well"


async def test_a_front_that_takes_nothing_holds_up_nobody() -> None:
    """Its channel is never read: what is for it waits, and the engine's steps go on."""
    async with shared() as engine:
        stays = await engine.front(2)
        await engine.front(1)
        channel = engine.links[1]._channel
        assert channel is not None
        channel._loop.remove_reader(channel._file)

        def speak(front: int, id: str) -> None:
            opened = Open(id, UtteranceSpec(), lead_cap=1_000.0)
            engine.links[front].submit(opened, Append(id, [1] * 400), Finish(id))

        for number in range(8):
            speak(1, f"a{number}")
        speak(2, "b")
        ended = await stays.over("b")
        assert isinstance(ended, Ended) and ended.frames >= 400
        assert not engine.links[1]._health.status(None).active, "it has heard nothing"
