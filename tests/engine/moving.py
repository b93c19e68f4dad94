"""Turns that lose their engine at chosen moments, and what is heard of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.engine.interface import Engine, EngineInfo, Progress, UtteranceSpec
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
    Refused,
    Started,
    Waits,
)
from realtime_tts.engine.load import engine_loader
from realtime_tts.engine.settings import EngineConfig
from tests.waiting import until
from tts_scheduler import SchedulerConfig

SCHEDULING = SchedulerConfig(
    slots=16, max_start_wait=0.0, lead_cap=600.0, utilisation=1_000.0, kv_utilisation=1_000.0
)
"""Everybody may come in, and speaks as fast as the machine can."""


def turn_of(name: str) -> str:
    """The id of an utterance that has another name wherever it goes on (`OpenUtterance.name`)."""
    return name.partition("~")[0]


class LosingLink(EngineLink):
    """An `EngineLink` over two, which loses an utterance at its n-th events of sound.

    `cuts[id]` are those n, counted anew each time: that event, and all that follows, never arrives;
    the next opening goes to the other link.
    """

    def __init__(self, links: Sequence[EngineLink], cuts: Mapping[str, Sequence[int]]) -> None:
        self._links = tuple(links)
        self._cuts = {id: list(counts) for id, counts in cuts.items()}
        self._heard: dict[str, int] = {}
        self._owner: dict[str, int] = {}
        self._next: dict[str, int] = {}
        self._left: set[tuple[str, int]] = set()
        """Whose link may still speak of the life that was lost: until it begins the next one."""
        self._deliver: Callable[[list[Event]], None] = lambda events: None

    @property
    def info(self) -> EngineInfo:
        return self._links[0].info

    def start(self, deliver: Callable[[list[Event]], None]) -> None:
        self._deliver = deliver
        for number, link in enumerate(self._links):
            link.start(lambda events, number=number: self._take(number, events))  # type: ignore[misc]

    def submit(self, *commands: Command) -> None:
        for command in commands:
            if isinstance(command, Open):
                self._owner[command.id] = self._next.get(turn_of(command.id), 0)
        for number, link in enumerate(self._links):
            group = [each for each in commands if self._owner.get(each.id) == number]
            if group:
                link.submit(*group)

    def check(self, spec: UtteranceSpec) -> None:
        self._links[0].check(spec)

    def status(self) -> EngineStatus:
        statuses = [link.status() for link in self._links]
        return next((one for one in statuses if not one.ready), statuses[0])

    async def stop(self) -> None:
        for link in self._links:
            await link.stop()

    def _take(self, number: int, events: list[Event]) -> None:
        told: list[Event] = []
        for event in events:
            if isinstance(event, Started | Refused):
                self._left.discard((event.id, number))
            if self._owner.get(event.id) == number and (event.id, number) not in self._left:
                told.append(self._told(event, number))
        if told:
            self._deliver(told)

    def _told(self, event: Event, number: int) -> Event:
        id, turn = event.id, turn_of(event.id)
        cuts = self._cuts.get(turn, [])
        if not (isinstance(event, Audio) and cuts):
            return event
        self._heard[turn] = self._heard.get(turn, 0) + 1
        if self._heard[turn] <= cuts[0]:
            return event
        del cuts[0], self._heard[turn], self._owner[id]
        self._next[turn] = (number + 1) % len(self._links)
        self._left.add((id, number))
        self._links[number].submit(Cancel(id))
        return Failed(id, "engine_restarted", "lost, by the test", retryable=True)


@dataclass
class Script:
    """An utterance: its text in pieces, each given when the one before was used up."""

    id: str
    pieces: Sequence[Sequence[int]]
    spec: UtteranceSpec = UtteranceSpec()
    events: list[Event] = field(default_factory=list)

    @property
    def pcm(self) -> bytes:
        return b"".join(event.pcm for event in self.events if isinstance(event, Audio))

    @property
    def codes(self) -> bytes:
        return b"".join(event.codes for event in self.events if isinstance(event, Audio))

    @property
    def tokens(self) -> bytes:
        return b"".join(event.tokens for event in self.events if isinstance(event, Audio))

    @property
    def moves(self) -> int:
        return sum(event.moved for event in self.events if isinstance(event, Started))

    @property
    def end(self) -> Event | None:
        last = [event for event in self.events if isinstance(event, Ended | Failed | Refused)]
        assert len(last) < 2, last
        return last[0] if last else None

    @property
    def story(self) -> tuple[object, ...]:
        """All of it but for how it was cut into events, and for times."""
        started = {event.layout for event in self.events if isinstance(event, Started)}
        waits = list(dict.fromkeys(e for e in self.events if isinstance(e, Waits)))
        end = self.end
        assert isinstance(end, Ended), end
        return started, self.pcm, self.codes, self.tokens, waits, end.reason, end.frames


async def spoken(link: EngineLink, scripts: Sequence[Script]) -> None:
    """Run the scripts side by side, to their ends."""
    by_id = {script.id: script for script in scripts}
    left = {script.id: list(script.pieces[1:]) for script in scripts}

    def give(id: str) -> list[Command]:
        pieces = left[id]
        last: list[Command] = [] if pieces else [Finish(id)]
        return last

    def take(events: list[Event]) -> None:
        for event in events:
            by_id[event.id].events.append(event)
            if isinstance(event, Waits) and left[event.id]:
                piece = left[event.id].pop(0)
                link.submit(Append(event.id, list(piece)), *give(event.id))

    link.start(take)
    try:
        await until(lambda: link.status().ready or link.status().failure, 60)
        for script in scripts:
            first = Append(script.id, list(script.pieces[0]))
            link.submit(Open(script.id, script.spec), first, *give(script.id))
        await until(lambda: all(script.end is not None for script in scripts), 120)
    finally:
        await link.stop()


def inline(load: Callable[[], Engine]) -> InProcessEngine:
    """In a thread, warmed up by nobody."""

    def loaded(progress: object) -> Engine:
        return _cold(load())

    return InProcessEngine(loaded, SCHEDULING)


def loader(kind: str) -> partial[Engine]:
    """Loads the demo voice, a `light` model or the fake engine, in one thread and without its
    warm-up."""
    if kind == "light":
        return partial(_light)
    config = EngineConfig(
        kind="process" if kind == "demo" else "fake", threads=1, step_seconds=0.002, max_frames=400
    )
    return partial(_loaded, config)


def _loaded(config: EngineConfig, progress: Progress) -> Engine:
    return _cold(engine_loader(config)(progress))


def _light(progress: Progress) -> Engine:
    """Random weights, which end by themselves sooner or later. Imports torch."""
    import torch

    from realtime_tts.engine.torch_engine import TorchEngine
    from realtime_tts.text.tokenizer import Qwen2Tokenizer
    from tests.model.light import light_model
    from tests.parity import PARITY

    torch.set_num_threads(1)
    folder = PARITY / "tiny-custom_voice"
    words = Qwen2Tokenizer.from_folder(folder)
    return _cold(TorchEngine(light_model(folder), words, name="light", slots=16, max_frames=60))


def _cold(engine: Engine) -> Engine:
    engine.warm_up = lambda progress: []  # type: ignore[method-assign]
    return engine
