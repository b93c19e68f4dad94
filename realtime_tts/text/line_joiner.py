"""Makes one line of several: speech models learn from transcripts, which have no newlines.

The demo voice, for one, says what stands around a newline wrong, and often ends there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from realtime_tts.text.characters import CLOSERS, MARKS, OPENERS, writes_without_spaces
from realtime_tts.text.spans import Piece, part_of

_QUOTES = "\"'“”‘’„‚«»"  # German closes with those that English and French open with
_PARTS = re.compile(r"\n+|[^\n]+")
_FINISHED = re.compile(rf"[{MARKS}][{_QUOTES}{re.escape(CLOSERS)}]*\s*\Z")
_BEHIND = re.compile(rf"[\s{_QUOTES}{re.escape(CLOSERS)}]*\Z")  # a line's last word
_BEFORE = f"{OPENERS}{_QUOTES}¿¡"  # a line's first word
_TAIL = 8  # characters
_PARAGRAPH = 2  # newlines
_NOTHING = Piece("", 0, 0)


class LineJoiner:
    """Writes a space for newlines behind a punctuation mark, and a stop for the end of a paragraph,
    a heading or the item of a list that has none. Other newlines stay: the text may be a poem, or
    be wrapped."""

    def __init__(self) -> None:
        self._tail = ""
        self._newlines = _NOTHING  # the last ones, which wait for more text

    def join(self, piece: Piece) -> Iterator[Piece]:
        """Yield the piece, in parts where it has newlines; none of those that end the text."""
        if self._newlines is _NOTHING and "\n" not in piece.text:
            self._tail = (self._tail + piece.text)[-_TAIL:]
            yield piece
            return
        for found in _PARTS.finditer(piece.text):
            part, held = part_of(piece, found.start(), len(found[0])), self._newlines
            if part.text[0] == "\n":
                start = part.start if held is _NOTHING else held.start
                self._newlines = Piece(held.text + part.text, start, part.end)
                continue
            if held is not _NOTHING:
                text = self._between(held.text, part.text[0])
                if text:
                    yield held._replace(text=text)
                self._newlines = _NOTHING
            self._tail = (self._tail + part.text)[-_TAIL:]
            yield part

    def _between(self, newlines: str, following: str) -> str:
        """Return what stands for newlines between the text so far and this character."""
        last = self._tail[-1:]
        if _FINISHED.search(self._tail):
            spaced = last.isspace() or following.isspace()
            return "" if spaced or writes_without_spaces(last) else " "
        # A space may be with the model already, which reads a stop behind it as any other.
        word = _BEHIND.sub("", self._tail)[-1:]
        begins = following.isalnum() or following in _BEFORE
        if len(newlines) < _PARAGRAPH or not (begins and word.isalnum()):
            return newlines
        return "。" if writes_without_spaces(word) else ". "
