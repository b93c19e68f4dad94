"""Fenced code, which is skipped up to the marks that close it."""

from __future__ import annotations


class Fence:
    """A fenced code block. `mark`: the run of marks that opened it. None of it is spoken, so
    nothing is held: the closing marks are counted as they arrive."""

    def __init__(self, mark: str) -> None:
        self.is_over = False
        self._mark = mark
        self._line = False  # at the start of a line
        self._closing = 0  # length of the run of marks at the start of this line

    @property
    def may_end(self) -> bool:
        """Whether the closing marks were read, so that the block ends if nothing follows in
        line."""
        return self._closing >= len(self._mark)

    def read(self, window: str) -> int:
        """Return how many characters belong to the block; 0 when it is over."""
        char, mark = window[0], self._mark[0]
        if self.may_end and char != mark and not char.isalnum():
            self.is_over = True
            return 0
        if char == "\n":
            self._line = True
            self._closing = 0
            return 1
        if self._line and char == mark:
            self._closing += 1
            return 1
        if self._line and not self._closing and char in " \t":
            return 1
        self._line = False
        self._closing = 0
        return len(window.partition("\n")[0])
