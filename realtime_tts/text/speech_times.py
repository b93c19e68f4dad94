"""When which text is spoken: an estimate, made while the speech is being made.

The model does not say which text a frame of audio speaks, and nothing here listens to it. The
rule is that of `spoken.py`: every character has an expected duration by its script. While more
speech may come, as much text counts as spoken as that many seconds usually hold; once the speech
is complete, the text is spread over it in proportion. Text is given out word by word, in order,
once, and never beyond the audio that it is asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import NamedTuple

from realtime_tts.text.spoken import expected_durations, may_end_word

_LOOK = 1_000
"""Characters that are looked at together."""


class SpokenSpan(NamedTuple):
    """`text`, as the caller gave it, is spoken from `start` to `end`: seconds of the speech."""

    text: str
    start: float
    end: float


class SpeechTimes:
    """The text of one turn against its audio. Nothing is worked out before somebody asks, and of
    a long text no more than the audio has come to."""

    def __init__(self, language: str | None = None) -> None:
        self._language = language
        self._fed: deque[str] = deque()  # not looked at yet
        self._text = ""  # looked at, and not given out yet
        self._ends: list[float] = []  # of its characters, in expected seconds of the whole speech
        self._expected = 0.0  # seconds of all text so far
        self._at = 0.0  # where the last span ended, in seconds of audio

    def feed(self, text: str) -> None:
        """Add text."""
        self._fed.extend(text[at : at + _LOOK] for at in range(0, len(text), _LOOK))

    def take(self, played: float, in_all: float | None = None) -> SpokenSpan | None:
        """The text that is spoken by `played` seconds and was not given out yet, if there is any.

        `in_all`: seconds of the speech of all the text, when that is known.
        """
        self._look(played if in_all is None else None)
        over = in_all is not None and played >= in_all
        if not self._text or not (played > self._at or over):
            return None
        if over:
            count = len(self._text)
        elif in_all is None:
            count = bisect_right(self._ends, played)
            while count and not (count < len(self._text) and may_end_word(self._text, count)):
                count -= 1
        else:
            count = bisect_right(self._ends, self._expected * played / in_all)
            while count and not may_end_word(self._text, count):
                count -= 1
        if not count:
            return None
        span = SpokenSpan(self._text[:count], self._at, played)
        self._text, self._ends = self._text[count:], self._ends[count:]
        self._at = played
        return span

    def _look(self, until: float | None) -> None:
        """Up to the text that is expected to be spoken after `until`; None: all of it."""
        while self._fed and (until is None or self._expected <= until):
            text = self._fed.popleft()
            self._text += text
            for seconds in expected_durations(text, self._language):
                self._expected += seconds
                self._ends.append(self._expected)
