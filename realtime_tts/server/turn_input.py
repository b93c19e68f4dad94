"""TurnInput: a turn's text on its way in, so that a long one holds nobody up.

Numbers are put into words and words into tokens on the event loop, which ships everybody's packets.
Only what is short is taken in at once; a long text goes in slice by slice, in the rounds that all
turns share.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import Enum, auto

from realtime_tts.server.rounds import Rounds
from realtime_tts.server.turn import OnAirTurn

SLICE = 250
"""Characters that are taken in at a time: 2 to 3.5 ms where all of them are numbers or amounts,
0.4 ms of prose."""


def is_long(characters: int) -> bool:
    """Whether a text of so many is taken in bit by bit."""
    return characters > SLICE


class _Mark(Enum):
    FLUSH = auto()
    END = auto()


class TurnInput:
    """What a turn is given, in its order. `end_text` is called when it is to hear of the end.

    A text that comes together with its end is whole to the engine, which hears of it with the last
    slice; any other is given on as it comes. All that is done in a round is done in `contained()`.
    """

    def __init__(
        self,
        turn: OnAirTurn,
        rounds: Rounds,
        clock: Callable[[], float],
        contained: Callable[[], AbstractContextManager[None]],
        end_text: Callable[[], None],
    ) -> None:
        self._turn = turn
        self._rounds = rounds
        self._clock = clock
        self._contained = contained
        self._end_text = end_text
        self._waiting: deque[str | _Mark] = deque()
        self._going = False  # it takes part in the rounds
        self._ending = False  # the end of the text waits
        self._taken_in = asyncio.Event()
        self._taken_in.set()

    @property
    def busy(self) -> bool:
        """Whether there is more to take in."""
        return bool(self._waiting)

    async def taken_in(self) -> None:
        """Wait until everything was taken in, or dropped."""
        await self._taken_in.wait()

    def feed(self, text: str) -> None:
        """Add text; not after `end`."""
        assert not self._ending, "text after the end of the turn"
        if self.busy or is_long(len(text)):
            self._turn.text_came(self._clock())
            self._add(*(text[at : at + SLICE] for at in range(0, len(text), SLICE)))
        else:
            self._turn.feed(text, self._clock())

    def flush(self) -> None:
        """Everything held back so far is to be spoken."""
        if self.busy:
            self._add(_Mark.FLUSH)
        else:
            self._turn.flush(self._clock())

    def end(self) -> None:
        """No more text."""
        if self.busy:
            self._ending = True
            self._add(_Mark.END)
        else:
            self._end_text()

    def drop(self) -> None:
        """The turn is over: what waits is not taken in any more. Idempotent."""
        self._turn.leave_unread("".join(item for item in self._waiting if isinstance(item, str)))
        self._waiting.clear()
        self._taken_in.set()

    def _add(self, *items: str | _Mark) -> None:
        self._waiting.extend(items)
        self._taken_in.clear()
        if not self._going:
            self._going = True
            self._rounds.add(self._step)

    def _step(self) -> bool:
        if self._waiting:
            try:
                with self._contained():
                    self._take(self._waiting.popleft())
            except BaseException:
                self._going = False
                self.drop()  # nobody waits for what will not go on
                raise
        if not self._waiting:
            self._going = False
            self._taken_in.set()
        return self._going

    def _take(self, item: str | _Mark) -> None:
        now = self._clock()
        if isinstance(item, str):
            self._turn.feed(item, now, withhold=self._ending)
        elif item is _Mark.FLUSH:
            self._turn.flush(now, withhold=self._ending)
        else:
            self._end_text()
