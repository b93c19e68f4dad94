"""Collects what the speech text filter lets through: pieces of text, with white space tidied."""

from __future__ import annotations

from enum import IntEnum

from realtime_tts.text.characters import MARKS, is_word_character, writes_without_spaces
from realtime_tts.text.directions import Item, SayAs, Seam
from realtime_tts.text.spans import Piece


class Gap(IntEnum):
    """What separates two texts in place of something that is not read; higher wins."""

    EMOJI = 1  # a space, if it stood between two words
    TAG = 2  # a space, if a word follows
    SPACE = 3  # a space
    CELL = 4  # a comma and a space, or a space after punctuation


_ENDS_CELL = frozenset(MARKS) - {"—", "–"}  # a dash alone is an empty cell, and no minus
_OPENING = "([{\"'“‘«„¿¡-/"
_TAIL = 64  # characters
_HEAD = 8  # characters
_MAX_NEWLINES = 2  # a paragraph's end; more are no longer pause


class SpeechWriter:
    """Collects pieces. Runs of white space shrink to one space or up to two newlines."""

    def __init__(self) -> None:
        self._last = ""
        self._tail = ""  # the last characters written
        self.head = ""
        """The first characters written in this line."""
        self._pieces: list[Item] = []
        self._newlines = _MAX_NEWLINES  # in the white space that ends the text; leading is dropped
        self._spaced = True  # the text ends in white space
        self._gap: tuple[Gap, int, int] | None = None

    @property
    def previous(self) -> str:
        """The character before the next one, white space included; "" before the first."""
        return " " if self._gap and self._gap[0] >= Gap.SPACE else self._last

    @property
    def inside_word(self) -> bool:
        """Whether a letter or digit stands directly before the next character."""
        return is_word_character(self.previous)

    @property
    def tail(self) -> str:
        """The last characters before the next one, at least some words."""
        return f"{self._tail} " if self._gap and self._gap[0] >= Gap.SPACE else self._tail

    def take(self) -> list[Item]:
        """Return what was written since the last call, in order."""
        pieces, self._pieces = self._pieces, []
        return pieces

    def say(self, text: str, at: int) -> None:
        """Write text that is not white space and stands at `at` in the source."""
        self._close_gap(text[0])
        self._put(text, at, at + len(text))
        self._newlines = 0
        self._spaced = False

    def space(self, char: str, at: int) -> None:
        """Write a space, unless white space is there already."""
        if not self._spaced:
            self._spaced = True
            self._put(char, at, at + 1)

    def copy(self, text: str, at: int) -> None:
        """Write any text as it is."""
        self._put(text, at, at + len(text))

    def replace(self, piece: Piece) -> None:
        """Write a text that stands for another one in the source."""
        self._close_gap(piece.text[0])
        self._put(piece.text, piece.start, piece.end)
        self._newlines = 0
        self._spaced = False

    def say_as(self, said: SayAs) -> None:
        """Write a text together with the kind of thing that it is."""
        self._close_gap(said.piece.text[0])
        self._pieces.append(said)
        self._last = self._tail = said.piece.text[-1]
        self._newlines = 0
        self._spaced = False

    def direct(self, seam: Seam) -> None:
        """Split the text here."""
        self._pieces.append(seam)

    def end_line(self, at: int, length: int) -> None:
        """Leave out source[at:at+length]; what follows begins a line."""
        if not self._newlines:
            self.newline(at, length)

    def newline(self, at: int, length: int = 1) -> None:
        """Write a newline, unless a paragraph has just ended."""
        self._gap = None
        self._spaced = True
        if self._newlines < _MAX_NEWLINES:
            self._newlines += 1
            self._put("\n", at, at + length)
        self.head = ""

    def gap(self, kind: Gap, at: int, length: int) -> None:
        """Leave out source[at:at+length]; if more follows in this line, `kind` separates it."""
        if self._gap is None or self._gap[0] < kind:
            self._gap = (kind, at, at + length)

    def _close_gap(self, following: str) -> None:
        if self._gap is None:
            return
        kind, start, end = self._gap
        self._gap = None
        if self._spaced:
            return
        if kind is Gap.CELL and self._last not in _ENDS_CELL:
            self._put(", ", start, end)
        elif kind >= Gap.SPACE or (
            is_word_character(following)
            and (kind is Gap.TAG or is_word_character(self._last))
            and not writes_without_spaces(self._last)
            and self._last not in _OPENING
        ):
            self._put(" ", start, end)

    def _put(self, text: str, start: int, end: int) -> None:
        self._last = text[-1]
        self._tail = (self._tail + text)[-_TAIL:]
        self.head = (self.head + text[:_HEAD])[:_HEAD]
        before = self._pieces[-1] if self._pieces else None
        if isinstance(before, Piece):
            # As `Piece.direct`, without its calls: this runs for each piece of text.
            direct = len(before.text) == before.end - before.start
            if direct and before.end == start and len(text) == end - start:
                self._pieces[-1] = Piece(before.text + text, before.start, end)
                return
        self._pieces.append(Piece(text, start, end))
