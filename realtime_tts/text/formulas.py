r"""Formulas in a text: `$x$`, `$$x$$`, `\(x\)` and `\[x\]`, and the commands in and around them."""

from __future__ import annotations

import re

from realtime_tts.text import latex
from realtime_tts.text.characters import is_word_character
from realtime_tts.text.marks import Step
from realtime_tts.text.spans import Piece
from realtime_tts.text.speech_writer import Gap, SpeechWriter

_ESCAPABLE = frozenset("\\`*_{}[]()#+-.!|~><$%&\"',/:;=?@^")
_CLOSERS = {"(": ")", "[": "]"}
_SPACES = frozenset("\\,;:! ")
r"""What follows the backslash of a space, as in `\,`, or of a line's end, `\\`."""
_START = re.compile(r"\\[(\[](?![A-Za-z]{3}|[])\"'!.|:])")
r"""The mark of a formula, and no bracket that Markdown escapes: `\[RFC 1]`, `\[]`."""
_OPEN_START = re.compile(r"\\[(\[][A-Za-z]{0,2}\Z")
_LIMITED = re.compile(r"[∑∫][^∑∫^→]{0,20}\Z")
"""A sum or an integral and its lower limit; what is raised behind them is the upper one."""


class FormulaReader:
    """Leaves out the marks around formulas, and writes the commands in them as signs."""

    def __init__(self, writer: SpeechWriter) -> None:
        self._out = writer
        self._end = ""  # the mark that ends the formula; "" outside

    def begin_line(self) -> None:
        """End a formula that stands in a line."""
        if self._end in ("$", ")"):
            self._end = ""

    def begin_paragraph(self) -> None:
        """End any formula: none has an empty line."""
        self._end = ""

    def read_dollar(self, window: str, at: int, ended: bool) -> Step:
        """Read the mark of a formula, `$$` or either end of `$x$`; return 0 for money."""
        previous = "" if self._end or window[1:2] in ("", "$") else self._out.previous
        if previous.isascii() and previous.isalpha():
            return 0  # US$
        step = latex.dollar(window, self._end == "$", ended)
        if step:
            self._end = "" if self._end else window[:step]
        return step

    def read_backslash(self, window: str, at: int, ended: bool) -> Step:
        """Read an escaped mark, a command, or the mark of a formula: `\\(`, `\\[`."""
        if len(window) == 1:
            return 0 if ended else None
        char = window[1]
        if char == "\n":
            return 1
        if char.isalpha():
            return self.read_command(window, at, ended)
        if char in _CLOSERS and not self._end and not self._out.inside_word:
            if not ended and _OPEN_START.match(window):
                return None
            if _START.match(window):
                self._end = _CLOSERS[char]
                return 2
        if char == self._end:
            self._end = ""
            return 2
        if self._end and char in _SPACES:
            self._out.gap(Gap.SPACE, at, 2)
            return 2
        if char not in _ESCAPABLE:
            return 0
        self._out.say(char, at + 1)
        return 2

    def read_command(self, window: str, at: int, ended: bool) -> Step:
        r"""Read a command of LaTeX, such as `\times`, a power or an index."""
        found = latex.command(window, ended, bool(self._end))
        if found is None or not found[0]:
            return None if found is None else 0
        length, said = found
        if said[:1] == "^" and _LIMITED.search(self._out.tail):
            said = f" → {said[1:].strip('()')}"
        if said.strip():
            self._out.replace(Piece(said, at, at + length))
        else:
            self._out.gap(Gap.SPACE if said else Gap.TAG, at, length)
        return length

    def read_index(self, window: str, at: int, ended: bool) -> Step:
        """Read the underscore of an index, `a_{n}` or, in a formula, `a_n`; return 0 for others."""
        if not is_word_character(self._out.previous) and self._out.previous not in ("∑", "∫"):
            return 0
        if len(window) == 1 and not ended and self._end:
            return None
        if window[1:2] == "{":
            return self.read_command(window, at, ended)
        if not self._end:
            return 0
        self._out.gap(Gap.SPACE, at, 1)
        return 1

    def read_ampersand(self, at: int) -> Step:
        """Read the mark at which the lines of a formula are aligned; return 0 outside formulas."""
        if not self._end:
            return 0
        self._out.gap(Gap.SPACE, at, 1)
        return 1
