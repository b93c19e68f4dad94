"""Collects what the normalizer says: held text as it is, or words for it, and pauses."""

from __future__ import annotations

from collections import deque

from realtime_tts.text.characters import is_hangul, is_word_character
from realtime_tts.text.directions import (
    MAX_BREAK_SECONDS,
    SHORTEST_BREAK_SECONDS,
    Break,
    Seam,
)
from realtime_tts.text.languages.patterns import MAX_WORD
from realtime_tts.text.spans import Piece, part_of

_TAIL = 2 * MAX_WORD  # characters remembered of what was read


class ReadingWriter:
    """Collects pieces: `hold` them; then `copy` or `replace` their characters in order."""

    def __init__(self) -> None:
        self.tail = ""
        """The last characters read."""
        self._pieces: deque[Piece] = deque()  # the held text
        self._taken = 0  # characters of the first piece that were read
        self._glue = False  # the last piece ended in a word that was not in the text
        self._break_seconds = 0.0
        self._out: list[Piece | Seam] = []

    def take(self) -> list[Piece | Seam]:
        """Return what was said since the last call."""
        out, self._out = self._out, []
        return out

    def hold(self, piece: Piece) -> None:
        """Add a piece of text that waits to be read."""
        self._pieces.append(piece)

    def copy(self, text: str) -> None:
        """Say the next held text, `text`, as it is."""
        if not text:
            return
        pieces = self._consume(text)
        if self._glue and is_word_character(text[0]) and not is_hangul(text[0]):
            self._out.append(Piece(" ", pieces[0].start, pieces[0].start))
        self._glue = False
        self._out += pieces

    def replace(self, text: str, said: str, *, spaced: bool) -> None:
        """Say `said` for the next held text, `text`. `spaced`: words are separated by spaces."""
        previous = self.tail[-1:]
        pieces = self._consume(text)
        if spaced and said and (self._glue or is_word_character(previous)):
            said = f" {said}" if is_word_character(said[0]) else said
        self._glue = spaced and is_word_character(said[-1:])
        end = pieces[-1].end if said.strip() else pieces[0].start  # a mark that only parts words
        self._out.append(Piece(said, pieces[0].start, end))

    def part(self, seam: Seam) -> None:
        """Split the speech here. Pauses last no longer than a turn may have them."""
        self._glue = False
        if isinstance(seam, Break):
            seconds = min(seam.seconds, MAX_BREAK_SECONDS - self._break_seconds)
            self._break_seconds += seconds
            if seconds < SHORTEST_BREAK_SECONDS:
                return
            seam = Break(seconds)
        self._out.append(seam)

    def _consume(self, text: str) -> list[Piece]:
        """Remove and return the pieces of the first held characters, `text`."""
        self.tail = (self.tail + text)[-_TAIL:]
        missing, taken = len(text), []
        while missing:
            piece = self._pieces[0]
            part = part_of(piece, self._taken, missing)
            missing -= len(part.text)
            self._taken += len(part.text)
            if self._taken == len(piece.text):
                self._pieces.popleft()
                self._taken = 0
            taken.append(part)
        return taken
