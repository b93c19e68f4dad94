"""Several engines behind one link: who gets a turn, and what one engine's end means to the rest."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from msgspec.structs import replace

from realtime_tts.engine.data_parallel import DataParallelEngines
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.interface import EngineInfo, Execution, UtteranceSpec
from realtime_tts.engine.link import (
    Append,
    Audio,
    Cancel,
    Command,
    Ended,
    EngineLink,
    EngineStatus,
    Event,
    Failed,
    Finish,
    Open,
    Played,
    Refused,
    Started,
    Waits,
)
from realtime_tts.engine.multiprocess import MultiprocessEngine, Supervision
from tests.engine.faulty import Faulty
from tests.waiting import until
from tts_scheduler import SchedulerConfig


class Scripted(EngineLink):
    """A link that only notes what it is given; its status is the test's."""

    def __init__(self, capacity: int, *, ready: bool = True, failure: str | None = None) -> None:
        self.given: list[object] = []
        self.calls = 0
        self.state = EngineStatus(ready, 1, 0, 0, capacity, 0.5, failure)
        self.deliver: Callable[[list[Event]], None] = lambda events: None

    @property
    def info(self) -> EngineInfo:
        return FakeEngine(FakeEngineConfig(slots=4)).info

    def start(self, deliver: Callable[[list[Event]], None]) -> None:
        self.deliver = deliver

    def submit(self, *commands: object) -> None:
        self.given += commands
        self.calls += 1

    def check(self, spec: UtteranceSpec) -> None: ...

    def status(self) -> EngineStatus:
        return self.state

    async def stop(self) -> None: ...

    def opened(self) -> list[str]:
        return [command.id for command in self.given if isinstance(command, Open)]


def engines(*links: Scripted) -> tuple[DataParallelEngines, list[Event]]:
    made, events = DataParallelEngines(links), list[Event]()
    made.start(events.extend)
    return made, events


def test_a_turn_goes_where_most_is_free_and_stays_there() -> None:
    small, large = Scripted(2), Scripted(4)
    link, events = engines(small, large)
    for number in range(6):
        link.submit(Open(f"t{number}", UtteranceSpec()), Append(f"t{number}", [number]))
    assert (len(small.opened()), len(large.opened())) == (2, 4)
    link.submit(*(Finish(f"t{number}") for number in range(6)))
    assert small.calls + large.calls == 6 + 2, "commands of one call travel together"
    for one in (small, large):
        ids = {command.id for command in one.given}  # type: ignore[attr-defined]
        assert ids == set(one.opened())
    large.deliver([Ended(large.opened()[0], "complete", 1, 0.0)])
    link.submit(Cancel(large.opened()[1]))
    link.submit(Open("next", UtteranceSpec()))
    assert large.opened()[-1] == "next" and len(events) == 1


def test_slots_and_what_computes_are_those_of_all() -> None:
    class OnGpu(Scripted):
        @property
        def info(self) -> EngineInfo:
            gpu = Execution(f"cuda:{self.state.capacity}", "bfloat16")
            return replace(super().info, executions=(gpu,))

    made, _ = engines(OnGpu(0), OnGpu(1))
    assert [one.device for one in made.info.executions] == ["cuda:0", "cuda:1"]
    assert made.info.slots == 8


def test_what_comes_for_an_utterance_that_ended_goes_nowhere() -> None:
    one = Scripted(2)
    link, _ = engines(one)
    link.submit(Open("a", UtteranceSpec()))
    one.deliver([Failed("a", "engine_error", "", True)])
    link.submit(Append("a", [1]), Cancel("a"), Cancel("a"))
    assert len(one.given) == 1


def test_turns_of_other_fronts_count() -> None:
    one, other = Scripted(8), Scripted(8)
    one.state = replace(one.state, others=5)
    link, _ = engines(one, other)
    for number in range(7):
        link.submit(Open(f"t{number}", UtteranceSpec()))
    assert (len(one.opened()), len(other.opened())) == (1, 6)
    assert link.status().others == 5


def test_a_refusal_is_tried_on_an_engine_with_capacity_before_anybody_hears_of_it() -> None:
    one, other, full = Scripted(8), Scripted(4), Scripted(0)
    link, events = engines(one, other, full)
    spoken: list[Command] = [Open("a", UtteranceSpec()), Append("a", [1]), Finish("a")]
    link.submit(*spoken[:2])
    link.submit(spoken[2])
    link.submit(Open("b", UtteranceSpec()))
    one.deliver([Refused("a", "overloaded", "queue is full", 1.0), Started("b", "streaming")])
    assert other.given == spoken and other.calls == 1, "in one piece"
    assert events == [Started("b", "streaming")]
    link.submit(Played("a", 0.5))
    assert other.given[-1] == Played("a", 0.5)
    refusal = Refused("a", "overloaded", "queue is full", 1.0)
    other.deliver([refusal])
    assert events[-1] == refusal and full.given == [], "nobody is left who could take it"
    assert link.status().capacity == 12 and not link._waiting.keys() - {"b"}
    link.submit(Open("c", UtteranceSpec()), Cancel("c"))
    one.deliver([Refused("c", "overloaded", "", 1.0), Refused("b", "overloaded", "", 1.0)])
    assert other.opened() == ["a"], "what was cancelled, or has started, is not begun again"
    assert not link._waiting


def test_an_utterance_that_waits_for_text_is_still_where_it_was() -> None:
    one, other = Scripted(2), Scripted(2)
    link, _ = engines(one, other)
    link.submit(Open("a", UtteranceSpec()), Append("a", [1]))
    one.deliver([Started("a", "streaming"), Audio("a", b"", stands=True), Waits("a", 1)])
    link.submit(Append("a", [2]), Finish("a"))
    assert one.given[-2:] == [Append("a", [2]), Finish("a")]
    link.submit(Open("b", UtteranceSpec()))
    assert other.opened() == ["b"], "it counts still"


def test_they_are_ready_when_all_have_been_and_while_one_is() -> None:
    first, second = Scripted(2), Scripted(4, ready=False)
    link, _ = engines(first, second)
    assert not link.status().ready
    second.state = EngineStatus(True, 2, 1, 1, 4, 0.1)
    assert link.status() == EngineStatus(True, 3, 1, 1, 6, 0.1)
    first.state = EngineStatus(False, 0, 0, 0, 0, 0.0)
    assert link.status() == EngineStatus(True, 2, 1, 1, 4, 0.1)
    link.submit(Open("a", UtteranceSpec()))
    assert second.opened() == ["a"], "an engine that restarts gets no turn"
    first.state = EngineStatus(False, 0, 0, 0, 0, 0.0, "gone")
    assert link.status().failure is None
    second.state = first.state
    assert link.status().failure == "gone" and not link.status().ready
    assert link.info.slots == 8


def test_an_engine_that_never_loads_fails_them_all() -> None:
    link, _ = engines(Scripted(2), Scripted(4, ready=False, failure="no such device"))
    assert link.status().failure == "no such device"


def speak(link: DataParallelEngines, id: str, tokens: int) -> None:
    link.submit(Open(id, UtteranceSpec()), Append(id, list(range(tokens))), Finish(id))


async def test_two_processes_share_the_load_and_one_speaks_on_when_the_other_dies() -> None:
    config = SchedulerConfig(slots=3, max_queue=0, max_start_wait=0.01, utilisation=1_000)
    supervision = Supervision(first_delay=0.05, tick_seconds=0.05)
    links = [MultiprocessEngine(Faulty(), config, supervision=supervision) for _ in range(2)]
    link, events = DataParallelEngines(links), []  # type: ignore[var-annotated]
    link.start(events.extend)
    try:
        await until(lambda: link.status().ready)
        for number in range(6):
            speak(link, f"turn-{number}", 300)
        await until(lambda: {e.id for e in events if isinstance(e, Started)} >= ids(range(6)))
        assert [one.open_utterances for one in links] == [3, 3]
        speak(link, "one-too-many", 2)
        await until(lambda: any(isinstance(e, Refused) for e in events))
        refused = next(e for e in events if isinstance(e, Refused))
        assert (refused.id, refused.code) == ("one-too-many", "overloaded")

        os.kill(links[0].pid or 0, signal.SIGKILL)
        await until(lambda: sum(isinstance(e, Failed) for e in events) == 3)
        assert link.status().ready and links[1].open_utterances == 3
        count = len(events)
        await until(lambda: sum(isinstance(e, Audio) for e in events[count:]) >= 3)
        await until(lambda: links[0].status().ready)
        speak(link, "again", 2)
        await until(lambda: any(isinstance(e, Ended) and e.id == "again" for e in events))
    finally:
        await link.stop()
    assert sum(isinstance(e, Failed) and e.code == "engine_stopped" for e in events) == 3


async def test_text_that_comes_after_a_wait_reaches_the_turn_s_engine() -> None:
    links = [InProcessEngine(Faulty(), SchedulerConfig(slots=4)) for _ in range(2)]
    link, events = DataParallelEngines(links), []  # type: ignore[var-annotated]
    link.start(events.extend)
    try:
        await until(lambda: link.status().ready)
        link.submit(Open("a", UtteranceSpec(layout="streaming")), Append("a", [1, 2]))
        await until(lambda: any(isinstance(e, Waits) for e in events))
        link.submit(Append("a", [3]), Finish("a"))
        await until(lambda: any(isinstance(e, Ended) for e in events))
    finally:
        await link.stop()
    assert next(e for e in events if isinstance(e, Ended)).frames == 9


def ids(numbers: range) -> set[str]:
    return {f"turn-{number}" for number in numbers}


async def test_threads_are_data_parallel_as_well() -> None:
    links = [InProcessEngine(Faulty(), SchedulerConfig(slots=4)) for _ in range(2)]
    link, events = DataParallelEngines(links), []  # type: ignore[var-annotated]
    link.start(events.extend)
    await until(lambda: link.status().ready)
    for number in range(4):
        speak(link, f"turn-{number}", 5)
    await until(lambda: sum(isinstance(e, Ended) for e in events) == 4)
    await link.stop()
