"""Marks of Markdown at the beginning of a text that may continue.

All these functions follow one rule: what they return for a text they also return for every longer
one, and where they cannot know they return None, unless the text has `ended`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from realtime_tts.text.characters import is_hangul, is_word_character, writes_without_spaces
from realtime_tts.text.dialled import is_star

MAX_HELD_CHARACTERS = 300
"""An incomplete mark of this many characters is text. Bounds memory, work and waiting."""
_DEEPEST_BRACKETS = 3  # an image with brackets in its text, in the label of a link

Step = int | None
"""Characters decided about: 0 = no mark here, after all; None = more text is needed."""


def run_length(text: str, char: str) -> int:
    """Return how many times `char` stands at the beginning."""
    return len(text) - len(text.lstrip(char))


def starts_with(text: str, ended: bool, words: tuple[str, ...]) -> str | None:
    """Return the first of `words` that the text starts with in any case; "" for none."""
    lower = text.lower()
    if not ended and any(len(lower) < len(word) and word.startswith(lower) for word in words):
        return None
    return next((word for word in words if lower.startswith(word)), "")


def closing_bracket(text: str) -> Step:
    """Find the index of the bracket, in the same line, that closes the one at the beginning."""
    depth = 0
    escaped = False
    for index, char in enumerate(text):
        if char == "\n" or depth > _DEEPEST_BRACKETS:
            return 0
        if escaped or char == "\\":
            escaped = not escaped
        elif char in "[]":
            depth += 1 if char == "[" else -1
            if depth == 0:
                return index
    return None


_UNSPACED_BULLETS = "・●■◆"  # in Japanese and Chinese
BULLETS = f"-*+•◦‣⁃{_UNSPACED_BULLETS}"
_NUMBER = re.compile(r"\d{1,3}[.)]\s")
_DEEPEST_HEADING = 6
_SHORTEST_RULE = 3
_SHORTEST_FENCE = 3


# Marks that stand at the start of a line. Each function says how many characters to drop.


def heading(text: str, ended: bool) -> Step:
    """Read the mark of a heading: `## Title`, but not `#1` or `#tag`."""
    level = run_length(text, "#")
    if level == len(text):
        return 0 if ended else None
    return level if level <= _DEEPEST_HEADING and text[level] in " \t\n" else 0


def bullet(text: str, ended: bool) -> Step:
    """Read the mark of a list: `- item`, but not `-5` or `**bold**`."""
    if len(text) == 1:
        return 0 if ended else None
    if text[0] in _UNSPACED_BULLETS:
        return int(text[1] != text[0])  # ●●社, ・・・
    return 1 if text[1] in " \t\n" else 0


def is_numbered(line: str) -> bool:
    """Return whether a line begins with the number of a list's item, which is read: `2. Item`."""
    return _NUMBER.match(line) is not None


def check_box(text: str, ended: bool) -> Step:
    """Read a check box, `[x] `, behind the mark of a list."""
    box = starts_with(text, ended, ("[ ] ", "[x] "))
    return None if box is None else len(box)


def rule(text: str, ended: bool) -> Step:
    """Read a line of nothing but three or more of its first character: `---`, `===`."""
    length = run_length(text, text[0])
    rest = text[length:].lstrip(" \t")
    if not rest and not ended:
        return None
    is_rule = length >= _SHORTEST_RULE and (not rest or rest[0] == "\n")
    return len(text) - len(rest) if is_rule else 0


def quote(text: str, ended: bool) -> Step:
    """Read the mark of a quotation: `> quoted`, but not `>= 5` or `>5`."""
    if len(text) == 1:
        return 1 if ended else None
    return 0 if text[1] == "=" or text[1].isdigit() else 1


def fence(text: str, ended: bool) -> Step:
    """Read the marks that open a fenced code block: three or more backticks or tildes."""
    length = run_length(text, text[0])
    if length < _SHORTEST_FENCE:
        return None if length == len(text) and not ended else 0
    language, newline, _ = text[length:].partition("\n")
    if text[0] == "`" and "`" in language:
        return 0  # inline code between three backticks
    return length if newline or ended else None


def rule_cell(text: str, ended: bool) -> Step:
    """Read a table's cell of dashes and colons, as in the line under its heading."""
    rest = text.lstrip(" \t:-")
    if not rest and not ended:
        return None
    cell = text[: len(text) - len(rest)]
    return len(cell) if "-" in cell and (not rest or rest[0] in "|\n") else 0


CHECKS = dict.fromkeys("✅✔☑✓", "✓") | dict.fromkeys("❌✖☒✗✘", "✗")
"""The marks that answer a question with yes or no, and the sign that is read for each."""


def check(text: str, ended: bool) -> Step:
    """Read such a mark at the end of a line or of a table's cell."""
    rest = text[1:].lstrip(" \t\ufe0f")
    if not rest and not ended:
        return None
    return len(text) - len(rest) if not rest or rest[0] in "|\n" else 0


_BEFORE_OPENING = frozenset("([{<\"'“‘«„—–-/:")  # emphasis may begin right after one of these
_LONGEST_MARK = 3  # ***both***


class Run(NamedTuple):
    """A run of one mark: how long it is, and whether it is text to be read."""

    length: int
    is_text: bool


class Emphasis:
    """Decides which `*`, `_` and `~` of a line are emphasis, and which are arithmetic, names and
    prices.

    It looks at the character before a run of marks, the one after it, and the marks still open: no
    mark waits for its partner, so an emphasised word is spoken while the rest is on its way.
    """

    def __init__(self) -> None:
        self._open: set[str] = set()

    def is_open(self, mark: str) -> bool:
        """Return whether the next such mark may close emphasis."""
        return mark in self._open

    def clear(self) -> None:
        """Forget all open marks: emphasis does not cross the end of a line."""
        self._open.clear()

    def decide(self, text: str, before: str, ended: bool) -> Run | None:
        """Decide about the run of marks at the beginning of `text`; return None if more is needed.

        `before` is the text before it, "" at the very start.
        """
        mark = text[0]
        key = mark == "*" and mark not in self._open and is_star(text, before, ended)
        if key is None:
            return None
        if key:
            return Run(1, is_text=True)
        previous = before[-1:]
        length = run_length(text, mark)
        if length == len(text) and not ended:
            return None
        after = text[length : length + 1]
        if mark == "~":
            return Run(length, is_text=length == 1)  # ~5 is "about five"
        particle = is_hangul(after) and (length > 1 or mark in self._open)  # _서울_은
        inside = is_word_character(previous) and is_word_character(after)
        if mark == "_" and inside and not particle:
            return Run(length, is_text=True)  # snake_case
        if length == 1:
            return Run(1, is_text=not self._toggles(mark, previous, after))
        return Run(length, is_text=mark == "*" and self._is_power(text[:length], previous, after))

    def _toggles(self, mark: str, before: str, after: str) -> bool:
        """Return whether a single * or _ opens or closes emphasis."""
        after_blank = not before or before.isspace()
        before_blank = not after or after.isspace()
        if mark in self._open and not after_blank:
            if mark == "*" or not is_word_character(after) or is_hangul(after):
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
        """Return whether two stars are the operator of `2 ** 3`, `x**2`, and not emphasis."""
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
