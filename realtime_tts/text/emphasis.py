"""Which `*`, `_` and `~` are emphasis, and which are arithmetic, names and prices.

Decided from the character before a run of marks, the one after it, and the marks still open: no
mark waits for its partner, so an emphasised word is spoken while the rest is still on its way.
"""

from __future__ import annotations

from typing import NamedTuple

from realtime_tts.text.characters import is_word_character, writes_without_spaces
from realtime_tts.text.marks import run_length

_BEFORE_OPENING = frozenset("([{<\"'“‘«„—–-/:")  # emphasis may begin right after one of these
_LONGEST_MARK = 3  # ***both***


class Run(NamedTuple):
    """A run of one mark: how long it is, and whether it is text to be read."""

    length: int
    is_text: bool


class Emphasis:
    """The emphasis marks open in a line."""

    def __init__(self) -> None:
        self._open: set[str] = set()

    def clear(self) -> None:
        """Emphasis does not reach over the end of a line."""
        self._open.clear()

    def decide(self, text: str, before: str, ended: bool) -> Run | None:
        """About the run of marks at the beginning of `text`; None if more text is needed.

        `before` is the character before it, "" at the very start.
        """
        mark = text[0]
        length = run_length(text, mark)
        if length == len(text) and not ended:
            return None
        after = text[length : length + 1]
        if mark == "~":
            return Run(length, is_text=length == 1)  # ~5 is "about five"
        if mark == "_" and is_word_character(before) and is_word_character(after):
            return Run(length, is_text=True)  # snake_case
        if length == 1:
            return Run(1, is_text=not self._toggles(mark, before, after))
        return Run(length, is_text=mark == "*" and self._is_power(text[:length], before, after))

    def _toggles(self, mark: str, before: str, after: str) -> bool:
        """Whether a single * or _ opens or closes emphasis."""
        after_blank = not before or before.isspace()
        before_blank = not after or after.isspace()
        if mark in self._open and not after_blank:
            if mark == "*" or not is_word_character(after):
                self._open.remove(mark)
                return True
        if before_blank:
            # A star alone at the start of a line is a list mark whose item is still to come.
            return mark == "*" and before in ("", "\n")
        opens = after_blank or before in _BEFORE_OPENING or writes_without_spaces(before)
        if opens:
            self._open.add(mark)
        return opens

    def _is_power(self, run: str, before: str, after: str) -> bool:
        """Whether two stars are the operator of `2 ** 3`, `x**2`; if not, they open or close."""
        mark = run[:_LONGEST_MARK]
        if mark in self._open:
            self._open.remove(mark)
            return False
        spaced = before.isspace() and after.isspace() and after != "\n"
        tight = (before.isdigit() and is_word_character(after)) or (
            (before == ")" or is_word_character(before)) and after.isdigit()
        )
        if len(run) == 2 and (spaced or tight):
            return True
        self._open.add(mark)
        return False
