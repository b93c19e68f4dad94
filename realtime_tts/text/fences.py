"""Fenced code: it is not read, up to the marks that close it."""

from __future__ import annotations


class Fence:
    """`mark`: the run of marks that opened it. Nothing of it is written, so nothing needs to be
    held: marks are counted as they come."""

    def __init__(self, mark: str) -> None:
        self.is_over = False
        self._mark = mark
        self._line = False  # at the start of a line
        self._closing = 0  # length of the run of marks at the start of this line

    @property
    def may_end(self) -> bool:
        """The marks that close it were read; if nothing follows in their line, it is over."""
        return self._closing >= len(self._mark)

    def read(self, window: str) -> int:
        """How many characters belong to it; 0 when it is over."""
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
