"""A turn as the session sees it: its state, and its text until the turn is on the air.

Two things end on their own: the input, which the client ends, and the speech, which the server
ends. MOVES says which events are legal in which state; a missing entry is an illegal one. A turn
whose speech ended first is LATE: what the client still sends for it is dropped, not an error,
because the client cannot have known.
"""

from __future__ import annotations

from collections import deque
from enum import IntEnum, auto
from itertools import groupby

from realtime_tts.audio.formats import ENGINE_RATE
from realtime_tts.protocol.effects import (
    Begun,
    Effect,
    EndText,
    FeedText,
    FlushText,
    HeardReport,
    TurnStats,
)
from realtime_tts.protocol.resuming import Resume
from realtime_tts.protocol.settings import SessionSettings


class State(IntEnum):  # its hash, unlike Enum's, is not computed in Python
    QUEUED = auto()
    QUEUED_ENDED = auto()  # "ended" is about the input
    ON_AIR = auto()
    ON_AIR_ENDED = auto()
    STOPPING = auto()  # interrupted; the connection has not answered yet
    LATE = auto()
    DONE = auto()


class Event(IntEnum):
    END = auto()  # of the input: until then it takes text and flushes
    OPEN = auto()  # the turn goes on the air
    STOP = auto()  # interrupted
    FINISH = auto()  # the server is done with it, for any reason


MOVES: dict[State, dict[Event, State]] = {
    State.QUEUED: {
        Event.END: State.QUEUED_ENDED,
        Event.OPEN: State.ON_AIR,
        Event.STOP: State.DONE,
        Event.FINISH: State.LATE,
    },
    State.QUEUED_ENDED: {
        Event.OPEN: State.ON_AIR_ENDED,
        Event.STOP: State.DONE,
        Event.FINISH: State.DONE,
    },
    State.ON_AIR: {
        Event.END: State.ON_AIR_ENDED,
        Event.STOP: State.STOPPING,
        Event.FINISH: State.LATE,
    },
    State.ON_AIR_ENDED: {
        Event.STOP: State.STOPPING,
        Event.FINISH: State.DONE,
    },
    State.STOPPING: {
        Event.FINISH: State.DONE,
    },
    State.LATE: {
        Event.END: State.DONE,
        Event.STOP: State.DONE,
    },
    State.DONE: {},
}


class TurnRecord:
    """One turn. `last_input`: when its text last moved, in seconds. `resume`: what was spoken of it
    on another socket, until it goes on the air or is over."""

    def __init__(
        self, turn_id: str, settings: SessionSettings, now: float, resume: Resume | None = None
    ) -> None:
        self.id = turn_id
        self.resume = resume
        self.settings = settings
        self.state = State.QUEUED
        self.begun = Begun(now, settings.traceparent)
        self.last_input = now
        self.chars = 0
        self.full = False  # a text was refused: taking a later one would leave a hole
        self.idled = False
        self.warned_late = False
        self._kept: list[str | None] = []  # None is a flush

    def may(self, event: Event) -> bool:
        return event in MOVES[self.state]

    def move(self, event: Event) -> None:
        self.state = MOVES[self.state][event]

    @property
    def input_open(self) -> bool:
        return self.may(Event.END)

    @property
    def alive(self) -> bool:
        """Whether `turn.done` has not been sent."""
        return self.state not in (State.LATE, State.DONE)

    @property
    def queued(self) -> bool:
        return self.may(Event.OPEN)

    # Text: passed on at once on the air, kept while queued.

    def feed(self, text: str) -> list[Effect]:
        self.chars += len(text)
        if not text:
            return []
        if not self.queued:
            return [FeedText(self.id, text)]
        self._kept.append(text)
        return []

    def flush(self) -> list[Effect]:
        if self.state is State.ON_AIR:
            return [FlushText(self.id)]
        if self.queued and self._kept and self._kept[-1] is not None:  # else nothing to flush
            self._kept.append(None)
        return []

    def end(self) -> list[Effect]:
        self.move(Event.END)
        return [EndText(self.id)] if self.state is State.ON_AIR_ENDED else []

    @property
    def kept_text(self) -> str:
        return "".join(part for part in self._kept if part is not None)

    def heard_before(self) -> HeardReport:
        """Return what was heard of a queued turn: what was spoken of it on another socket."""
        text = self.kept_text
        if self.resume is None:
            return HeardReport(0, 0.0, "", text)
        samples, cut = self.resume.samples, self.resume.text_chars
        return HeardReport(samples, samples * 1000 / ENGINE_RATE, text[:cut], text[cut:])

    def stats_before(self) -> TurnStats:
        """Return the numbers of a turn that was never on the air here."""
        return TurnStats(samples=0 if self.resume is None else self.resume.samples)

    def release(self) -> list[Effect]:
        """Put the turn on the air; return all kept text, with each run of deltas in one piece."""
        self.move(Event.OPEN)
        effects: list[Effect] = []
        for is_text, parts in groupby(self._kept, key=lambda part: part is not None):
            if is_text:
                effects.append(FeedText(self.id, "".join(part for part in parts if part)))
            else:
                effects.append(FlushText(self.id))
        if not self.input_open:
            effects.append(EndText(self.id))
        self._kept.clear()
        return effects


REMEMBERED = 256
"""Number of finished turns whose ids are still known; an older id counts as new."""


class TurnTable:
    """All turns of a session that are known: `on_air` is the one that was opened; those in `queue`
    wait behind it, oldest first."""

    def __init__(self) -> None:
        self.on_air: TurnRecord | None = None
        self.queue: deque[TurnRecord] = deque()
        self.last_heard: TurnRecord | None = None
        """The turn that left the air last: its listener may still hear it."""
        self._known: dict[str, TurnRecord] = {}
        self._finished: deque[TurnRecord] = deque()
        self._open: list[TurnRecord] = []
        self._made = 0

    def get(self, turn_id: str) -> TurnRecord | None:
        return self._known.get(turn_id)

    def begin(
        self,
        turn_id: str | None,
        settings: SessionSettings,
        now: float,
        resume: Resume | None = None,
    ) -> TurnRecord:
        """Make a new turn, not queued yet; without an id it gets one of ours."""
        turn = TurnRecord(turn_id or self._make_id(), settings, now, resume)
        self._known[turn.id] = turn
        self._open.append(turn)
        return turn

    def open_next(self) -> TurnRecord | None:
        """Return the turn that goes on the air now, if the air is free and one waits."""
        if self.on_air is None and self.queue:
            self.on_air = self.queue.popleft()
            return self.on_air
        return None

    def finish(self, turn: TurnRecord, event: Event) -> None:
        """Note that the turn is over: by Event.FINISH, or by Event.STOP while queued."""
        turn.move(event)
        turn.resume = None  # the record is kept for long, and the codes are many
        if turn is self.on_air:
            self.on_air = None
            self.last_heard = turn
        elif turn in self.queue:
            self.queue.remove(turn)
        self._finished.append(turn)
        if len(self._finished) > REMEMBERED:
            self._forget(self._finished.popleft())

    @property
    def inputs(self) -> list[TurnRecord]:
        """The turns whose text the client has not ended, oldest first."""
        self._open = [turn for turn in self._open if turn.input_open]
        return self._open

    def newest_input(self) -> TurnRecord | None:
        inputs = self.inputs
        return inputs[-1] if inputs else None

    def _forget(self, turn: TurnRecord) -> None:
        del self._known[turn.id]
        if turn.state is State.LATE:
            turn.move(Event.END)
        if turn is self.last_heard:
            self.last_heard = None

    def _make_id(self) -> str:
        while True:
            self._made += 1
            if (turn_id := f"t{self._made}") not in self._known:
                return turn_id
