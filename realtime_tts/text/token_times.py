"""When each token of an utterance's text is spoken, where the model tells: frame by frame.

A frame comes with the token that it speaks (`Audio.tokens`). These are read without looking ahead
and are not always right: in a silence the model looks anywhere, and now and then it looks far ahead
for a frame. `Progress` makes of them a place in the text that never goes back; `TokenTimes` keeps
when the place moved on.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from realtime_tts.text.spoken import may_end_word


class Progress:
    """The token that is being spoken; -1 before the first frame.

    A step to one of the next `_NEAR` tokens counts at once. A longer one counts when the frames
    that follow agree: until then the place stays where it is.
    """

    def __init__(self) -> None:
        self.token = -1
        self._far: list[int] = []  # where the last frames were, while that is too far to believe

    def frame(self, token: int) -> bool:
        """A frame says that it speaks this token. Gives whether the place moved on."""
        step = token - self.token
        if step <= 0:
            self._far.clear()
            return False
        if step > _NEAR and not self._agree(token):
            return False
        self._far.clear()
        self.token = token
        return True

    def _agree(self, token: int) -> bool:
        """Whether enough frames in a row were as far, and went on from each other."""
        far = self._far
        if far and not 0 <= token - far[-1] <= _NEAR:
            far.clear()
        far.append(token)
        return len(far) > _FRAMES


FRAME_SECONDS = 0.08

_NEAR = 8
"""Tokens: two or three words."""
_FRAMES = 3


class TokenWord(NamedTuple):
    """A word that ends at character `stop` and byte `byte`, and between which seconds it is spoken;
    None: not yet, as far as is known."""

    stop: int
    byte: int
    start: float | None
    end: float | None


class TokenTimes:
    """The tokens of one utterance, which the model is given as it speaks, and its frames.

    Seconds count from the utterance's first sound, bytes from the beginning of its text.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        """`sizes`: bytes of each token; it grows as the model is given more."""
        self._sizes = sizes
        self._ends = [0]
        self._progress = Progress()
        self._tokens: list[int] = []  # that the place moved to
        self._starts: list[float] = []  # and when
        self._hushes: list[float] = []  # for each of them, when it fell silent; inf: it did not

    def frame(self, token: int, start: float) -> None:
        """A frame whose sound begins at `start` speaks this token."""
        if self._progress.frame(token):
            self._tokens.append(self._progress.token)
            self._starts.append(max(0.0, start))
            self._hushes.append(float("inf"))

    def hushed(self, at: float) -> None:
        """Nothing was heard from `at` on."""
        if self._starts and at > self._starts[-1]:
            self._hushes[-1] = min(self._hushes[-1], at)

    def words(self, text: str, at: int, byte: int, end: int) -> Iterator[TokenWord]:
        """The words of text[at:end]; text[at] is byte `byte` of the utterance's text."""
        while at < end:
            stop = next((to for to in range(at + 1, end) if may_end_word(text, to)), end)
            after = byte + _utf8_length(text[at:stop])
            start = self._start(byte, _leading_space(text, at, end))
            following = self._start(after, _leading_space(text, stop, end))
            known = start is not None and following is not None
            yield TokenWord(stop, after, start, self._hush(start, following) if known else None)
            at, byte = stop, after

    def _start(self, byte: int, space: int) -> float | None:
        """When what comes behind `space` bytes of white space at `byte` begins to be spoken; None:
        not yet, as far as is known.

        A token that begins in that white space begins with it. Where words have no spaces, a token
        may be several of them; they are reached as it goes by.
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

    def _hush(self, begin: float, end: float) -> float:
        """When what is spoken from `begin` fell silent before `end`; `end` if it did not."""
        run = bisect_right(self._starts, begin) - 1
        last = bisect_left(self._starts, end) - 1
        heard = self._hushes[last] if last >= max(run, 0) else end
        return min(end, heard)

    def _reached(self, token: int) -> float | None:
        run = bisect_left(self._tokens, token)
        return self._starts[run] if run < len(self._tokens) else None


def _utf8_length(text: str) -> int:
    """Bytes of a text as a tokenizer reads it: in normal form C."""
    return len(text) if text.isascii() else len(unicodedata.normalize("NFC", text).encode())


def _leading_space(text: str, at: int, end: int) -> int:
    """Bytes of the white space at text[at:end]."""
    stop = at
    while stop < end and text[stop].isspace():
        stop += 1
    return _utf8_length(text[at:stop])
