"""Where in the caller's text a piece of processed text came from. Offsets count code points."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple


class Piece(NamedTuple):
    """A piece of text, which stands for source[start:end].

    If both have the same length the characters correspond one to one, otherwise the piece is
    indivisible. What lies between two pieces is in the source but not spoken.
    """

    text: str
    start: int
    end: int

    @property
    def direct(self) -> bool:
        """Whether the characters correspond one to one."""
        return len(self.text) == self.end - self.start


class OffsetMap:
    """Maps offsets after a stage that removes or replaces characters to offsets before it.

    A removed character counts as part of the one before it.
    """

    def __init__(self) -> None:
        self._after = [0]
        self._before = [0]

    def mark(self, after: int, before: int) -> None:
        """Record that the character at `after`, and those that follow it, came from `before`."""
        if self._before[-1] - self._after[-1] == before - after:
            return
        if self._after[-1] == after:
            self._before[-1] = before
        else:
            self._after.append(after)
            self._before.append(before)

    def before(self, after: int) -> int:
        index = bisect_right(self._after, after) - 1
        return self._before[index] + after - self._after[index]


class PieceMap:
    """Maps characters of all pieces, joined, to offsets in their source."""

    def __init__(self) -> None:
        self.length = 0
        self._at: list[int] = []  # where in the joined text each entry begins
        self._pieces: list[tuple[int, int, bool]] = []  # start, end, characters one to one

    def add(self, piece: Piece) -> None:
        """Add the next piece. Pieces that touch and match one to one become one entry."""
        direct = piece.direct
        if direct and self._pieces:
            start, end, last_direct = self._pieces[-1]
            if last_direct and end == piece.start:
                self._pieces[-1] = (start, piece.end, True)
                self.length += len(piece.text)
                return
        self._at.append(self.length)
        self._pieces.append((piece.start, piece.end, direct))
        self.length += len(piece.text)

    def source_offset(self, count: int) -> int:
        """Return the source offset just after the first `count` characters; 0 for none of them.

        A piece that is not one to one counts when its last character does.
        """
        if count <= 0 or not self._pieces:
            return 0
        count = min(count, self.length)
        index = bisect_right(self._at, count - 1) - 1
        start, end, direct = self._pieces[index]
        if direct:
            return start + count - self._at[index]
        next_at = self._at[index + 1] if index + 1 < len(self._at) else self.length
        return end if count == next_at else start

    def source_start(self, index: int) -> int | None:
        """Return the source offset where character `index` begins; None if there is none."""
        if not 0 <= index < self.length:
            return None
        entry = bisect_right(self._at, index) - 1
        start, _, direct = self._pieces[entry]
        return start + index - self._at[entry] if direct else start


def part_of(piece: Piece, begin: int, length: int) -> Piece:
    """Return some characters of a piece. If it is not one to one, the first stand for all of it."""
    text = piece.text[begin : begin + length]
    if piece.direct:
        return Piece(text, piece.start + begin, piece.start + begin + len(text))
    return Piece(text, piece.end if begin else piece.start, piece.end)


def without_first(piece: Piece, count: int) -> Piece:
    """Remove the first characters. If it is not one to one, the rest stands for all of it."""
    start = piece.start + count if piece.direct else piece.start
    return Piece(piece.text[count:], start, piece.end)
