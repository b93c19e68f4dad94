"""Which turn is on the air, which wait, which are over but still known."""

from __future__ import annotations

from collections import deque

from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.protocol.turn import Event, State, Turn

REMEMBERED = 256
"""Finished turns whose ids are still known; an older id is as good as new."""


class Roster:
    """`on_air` is the one turn that was opened; `queue` waits behind it, oldest first."""

    def __init__(self) -> None:
        self.on_air: Turn | None = None
        self.queue: deque[Turn] = deque()
        self.last_heard: Turn | None = None
        """The turn that left the air last: its listener may still hear it."""
        self._known: dict[str, Turn] = {}
        self._finished: deque[Turn] = deque()
        self._open: list[Turn] = []
        self._made = 0

    def get(self, turn_id: str) -> Turn | None:
        return self._known.get(turn_id)

    def begin(self, turn_id: str | None, settings: SessionSettings, now: float) -> Turn:
        """A new turn, not queued yet; without an id it gets one of ours."""
        turn = Turn(turn_id or self._make_id(), settings, now)
        self._known[turn.id] = turn
        self._open.append(turn)
        return turn

    def open_next(self) -> Turn | None:
        """The turn that goes on the air now, if the air is free and one waits."""
        if self.on_air is None and self.queue:
            self.on_air = self.queue.popleft()
            return self.on_air
        return None

    def finish(self, turn: Turn, event: Event) -> None:
        """The turn is over: by Event.FINISH, or Event.STOP while queued."""
        turn.move(event)
        if turn is self.on_air:
            self.on_air = None
            self.last_heard = turn
        elif turn in self.queue:
            self.queue.remove(turn)
        self._finished.append(turn)
        if len(self._finished) > REMEMBERED:
            self._forget(self._finished.popleft())

    @property
    def inputs(self) -> list[Turn]:
        """The turns whose input the client has not ended, oldest first."""
        self._open = [turn for turn in self._open if turn.input_open]
        return self._open

    def newest_input(self) -> Turn | None:
        inputs = self.inputs
        return inputs[-1] if inputs else None

    def _forget(self, turn: Turn) -> None:
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
