"""TextInput: a segment's text on its way in, in slices, so that a long text delays nobody.

Text becomes words and tokens on the event loop, which also sends everybody's packets. Short text is
processed at once; a long text, slice by slice, in time slices that all speeches share.
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
"""Characters processed at a time: 2 to 3.5 ms if all are numbers or amounts, 0.4 ms of prose. Fewer
if a lexicon replaces them by more."""


class _Mark(Enum):
    COMMIT = auto()
    END = auto()


class TextInput:
    """Text, commits and the end, in order. `end_text` is called when the end is reached, `fail` if
    the text cannot be spoken: text waits until the lexicons of its speech are loaded.

    If a text comes together with its end, the engine gets all of it with the last slice; other text
    is passed on as it comes. Time slices run within `contained`, one turn for each `client`.
    """

    def __init__(
        self,
        utterances: Utterances,
        engine: EngineHost,
        settings: SessionSettings,
        client: str,
        contained: AbstractContextManager[None],
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
        self._going = False  # whether it has a time slice to come
        self._ending = False  # whether the end of the text waits

    @property
    def busy(self) -> bool:
        """Whether text waits to be processed."""
        return bool(self._waiting)

    def feed(self, text: str, *, ends: bool = False) -> None:
        """Add text; not after `end`. `ends`: `end` comes next."""
        assert not self._ending, "text after the end of the segment"
        if self.busy or len(text) > self._most or not self._can_speak:
            self._utterances.text_received(time.monotonic())
            self._add(text)
        else:
            self._utterances.feed(text, time.monotonic(), withhold=ends)

    def commit(self) -> None:
        """Speak all text so far to its end."""
        if self.busy:
            self._add(_Mark.COMMIT)
        else:
            self._utterances.commit(time.monotonic())

    def end(self) -> None:
        """End the text."""
        if self.busy:
            self._ending = True
            self._add(_Mark.END)
        else:
            self._end_text()

    def drop(self) -> None:
        """Drop what waits, since the speech is over. Idempotent."""
        unread = "".join(item for item in self._waiting if isinstance(item, str))
        self._utterances.listener.unread += unread
        self._waiting.clear()

    def release(self) -> None:
        """Process nothing any more, and forget the owner."""
        self._contained, self._end_text, self._fail = nullcontext(), _nothing, _nothing

    def _add(self, item: str | _Mark) -> None:
        self._waiting.append(item)
        self._go()

    @property
    def _most(self) -> int:
        """Characters of one slice."""
        return max(1, SLICE // self._words.growth) if self._words else SLICE

    @property
    def _can_speak(self) -> bool:
        return all(lexicon.ready and lexicon.failure is None for lexicon in self._lexicons)

    def _go(self) -> None:
        """Process what waits, in time slices, once the lexicons are loaded."""
        if self._going or not (self._waiting and all(each.ready for each in self._lexicons)):
            return
        failed = next((each.failure for each in self._lexicons if each.failure), None)
        if failed is not None:
            with self._contained:
                self._fail(TurnFailure(failed.code, str(failed)))
            return
        self._going = True
        self._time_slices.add(self._step, self._client)

    def _step(self) -> bool:
        if self._waiting:
            try:
                with self._contained:
                    self._take(self._next())
            except BaseException:
                self._going = False
                self.drop()  # the rest will not be processed
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
    """Do nothing, in place of a callback whose owner is gone."""
