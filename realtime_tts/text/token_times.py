"""When the words of an utterance's text are spoken, where the model reports it frame by frame.

A frame comes with the token that it speaks (`Audio.tokens`). `Progress` makes of these a position
in the text that never goes back; `TokenTimes` records when the position moved on.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from realtime_tts.text.progress import Progress
from realtime_tts.text.spoken import may_end_word

FRAME_SECONDS = 0.08
"""Seconds of speech in one frame."""


class TokenWord(NamedTuple):
    """A word that ends at character `stop` and byte `byte`, and the seconds between which it is
    spoken; None where that is not known yet."""

    stop: int
    byte: int
    start: float | None
    end: float | None


class TokenTimes:
    """Records when the tokens of one utterance are spoken, frame by frame.

    Seconds count from the utterance's first sound, bytes from the beginning of its text.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        """`sizes`: bytes of each token; the list grows as the model is given more."""
        self._sizes = sizes
        self._ends = [0]
        self._progress = Progress()
        self._tokens: list[int] = []  # that the position moved to
        self._starts: list[float] = []  # and when
        self._silences: list[float] = []  # when each of them fell silent; inf: it did not

    def frame(self, token: int, start: float) -> None:
        """Record that a frame whose sound begins at `start` speaks this token."""
        if self._progress.frame(token):
            self._tokens.append(self._progress.token)
            self._starts.append(max(0.0, start))
            self._silences.append(float("inf"))

    def silent_from(self, at: float) -> None:
        """Record that nothing can be heard from `at` on."""
        if self._starts and at > self._starts[-1]:
            self._silences[-1] = min(self._silences[-1], at)

    def words(self, text: str, at: int, byte: int, end: int) -> Iterator[TokenWord]:
        """Yield the words of text[at:end]; text[at] is byte `byte` of the utterance's text."""
        while at < end:
            stop = next((to for to in range(at + 1, end) if may_end_word(text, to)), end)
            after = byte + _utf8_length(text[at:stop])
            start = self._start(byte, _leading_space(text, at, end))
            yield TokenWord(stop, after, start, self._end(start, self._start(after), after))
            at, byte = stop, after

    def spoke(self, text: str) -> bool:
        """Return whether all of this text, the utterance's, was spoken: the last word was reached,
        and nothing was skipped on the way."""
        last = max((at for at, char in enumerate(text) if char.isalnum()), default=-1)
        if last < 0 or not self._tokens:
            return True  # nothing to speak, or the model reports nothing
        begin = next((at for at in range(last, 0, -1) if may_end_word(text, at)), 0)
        space = _leading_space(text, begin, last)
        reached = self._start(_utf8_length(text[:begin]), space) is not None
        return reached and not self._progress.skipped

    def _start(self, byte: int, space: int = 0) -> float | None:
        """Return when what follows `space` bytes of white space at `byte` begins to be spoken; None
        if that is not known yet.

        A token that begins in that white space begins with it. Where words have no spaces, a token
        may be several of them; they are reached one after another while it is spoken.
        """
        more = self._sizes[len(self._ends) - 1 :]
        self._ends += list(accumulate(more, initial=self._ends.pop()))
        token = bisect_right(self._ends, byte + space) - 1
        if token + 1 >= len(self._ends):
            return None
        begins = self._reached(token)
        inside = max(0, byte - self._ends[token]) / (self._ends[token + 1] - self._ends[token])
        if not inside or begins is None:
            return begins
        after = self._reached(token + 1)
        return None if after is None else begins + inside * (after - begins)

    def _end(self, begin: float | None, end: float | None, byte: int) -> float | None:
        """Return when a word up to `byte`, spoken from `begin` on and before the next one at `end`,
        fell silent; `end` if it did not. None while `begin` or `end` is not known."""
        if begin is None or end is None:
            return None
        last = bisect_left(self._ends, byte) - 1  # its last token
        run = bisect_right(self._tokens, last) - 1
        return max(begin, min(end, self._silences[run])) if run >= 0 else end

    def _reached(self, token: int) -> float | None:
        run = bisect_left(self._tokens, token)
        return self._starts[run] if run < len(self._tokens) else None


def _utf8_length(text: str) -> int:
    """Return the bytes of a text as a tokenizer reads it: in normal form C."""
    return len(text) if text.isascii() else len(unicodedata.normalize("NFC", text).encode())


def _leading_space(text: str, at: int, end: int) -> int:
    """Return the bytes of the white space that text[at:end] begins with."""
    stop = at
    while stop < end and text[stop].isspace():
        stop += 1
    return _utf8_length(text[at:stop])
