"""TextInput: a segment's text on its way in, so that a long one holds nobody up.

Numbers are put into words and words into tokens on the event loop, which ships everybody's packets.
Only what is short is taken in at once; a long text goes in slice by slice, in the time slices that
all speeches share.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from enum import Enum, auto

from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.engine_host import EngineHost
from realtime_tts.server.utterances import Utterances
from realtime_tts.text.lexicon import lexicon_for

SLICE = 250
"""Characters that are taken in at a time: 2 to 3.5 ms where all of them are numbers or amounts,
0.4 ms of prose. Fewer where a lexicon says more for them."""


class _Mark(Enum):
    COMMIT = auto()
    END = auto()


class TextInput:
    """Text, commits and the end, in their order. `end_text` is called when the end has its turn,
    `fail` if the text cannot be spoken: it waits until the lexicons of its speech are in memory.

    A text that comes together with its end is whole to the engine, which hears of it with the last
    slice; any other is given on as it comes. Everything that is done in a time slice is done in
    `contained()`. `client`: all texts of one have a turn in common.
    """

    def __init__(
        self,
        utterances: Utterances,
        engine: EngineHost,
        settings: SessionSettings,
        client: str,
        contained: Callable[[], AbstractContextManager[None]],
        end_text: Callable[[], None],
        fail: Callable[[TurnFailure], None],
    ) -> None:
        self._utterances = utterances
        self._time_slices, self._client = engine.time_slices, client
        self._contained, self._end_text, self._fail = contained, end_text, fail
        self._lexicons = engine.lexicons(settings.lexicons)
        self._words = lexicon_for(settings.lexicon, self._lexicons)
        for lexicon in self._lexicons:
            if not lexicon.ready:
                lexicon.when_ready(self._go)
        self._waiting: deque[str | _Mark] = deque()
        self._going = False  # it takes part in the time slices
        self._ending = False  # the end of the text waits

    @property
    def busy(self) -> bool:
        """Whether there is more to take in."""
        return bool(self._waiting)

    def feed(self, text: str, *, ends: bool = False) -> None:
        """Add text; not after `end`. `ends`: that comes next."""
        assert not self._ending, "text after the end of the segment"
        if self.busy or len(text) > self._most or not self._can_speak:
            self._utterances.text_received(time.monotonic())
            self._add(text)
        else:
            self._utterances.feed(text, time.monotonic(), withhold=ends)

    def commit(self) -> None:
        """Everything held back so far is to be spoken."""
        if self.busy:
            self._add(_Mark.COMMIT)
        else:
            self._utterances.commit(time.monotonic())

    def end(self) -> None:
        """No more text."""
        if self.busy:
            self._ending = True
            self._add(_Mark.END)
        else:
            self._end_text()

    def drop(self) -> None:
        """The speech is over: what waits is not taken in any more. Idempotent."""
        unread = "".join(item for item in self._waiting if isinstance(item, str))
        self._utterances.listener.unread += unread
        self._waiting.clear()

    def release(self) -> None:
        """Nothing is taken in any more: its owner is forgotten."""
        self._contained, self._end_text, self._fail = nullcontext, _nothing, _nothing

    def _add(self, item: str | _Mark) -> None:
        self._waiting.append(item)
        self._go()

    @property
    def _most(self) -> int:
        """Characters of a slice."""
        return max(1, SLICE // self._words.growth) if self._words else SLICE

    @property
    def _can_speak(self) -> bool:
        return all(lexicon.ready and lexicon.failure is None for lexicon in self._lexicons)

    def _go(self) -> None:
        """Take in what waits, in time slices, once the lexicons are there."""
        if self._going or not (self._waiting and all(each.ready for each in self._lexicons)):
            return
        failed = next((each.failure for each in self._lexicons if each.failure), None)
        if failed is not None:
            with self._contained():
                self._fail(TurnFailure(failed.code, str(failed)))
            return
        self._going = True
        self._time_slices.add(self._step, self._client)

    def _step(self) -> bool:
        if self._waiting:
            try:
                with self._contained():
                    self._take(self._next())
            except BaseException:
                self._going = False
                self.drop()  # nobody waits for what will not go on
                raise
        self._going = bool(self._waiting)
        return self._going

    def _next(self) -> str | _Mark:
        item, most = self._waiting.popleft(), self._most
        if isinstance(item, str) and len(item) > most:
            self._waiting.appendleft(item[most:])
            return item[:most]
        return item

    def _take(self, item: str | _Mark) -> None:
        now = time.monotonic()
        if isinstance(item, str):
            self._utterances.feed(item, now, withhold=self._ending)
        elif item is _Mark.COMMIT:
            self._utterances.commit(now, withhold=self._ending)
        else:
            self._end_text()


def _nothing(*told: object) -> None:
    """Whoever would be told is gone."""
