"""Qwen2's pre-tokeniser as a state machine, for text that arrives in pieces.

The expression `PATTERN` cuts a text into pre-tokens, and byte-pair encoding never crosses a cut.
Run on a growing text, only its last match can still change, with two exceptions handled here: a
whole run of trailing white space is open (where it ends decides how it is cut), and a digit or an
English contraction is complete at once. The classes of characters are asked of the library's own
expression engine, so that both agree in every Unicode version.
"""

from __future__ import annotations

import re
from enum import IntEnum, auto
from functools import lru_cache

from tokenizers import Regex, pre_tokenizers

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"  # English contractions
    r"|[^\r\n\p{L}\p{N}]?\p{L}+"  # a word, with one leading character of any other kind
    r"|\p{N}"  # one digit
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*"  # punctuation, with a leading space and trailing newlines
    r"|\s*[\r\n]+"  # white space up to its last newline
    r"|\s+(?!\S)"  # white space, except its last character if something follows
    r"|\s+"
)
SPLIT = pre_tokenizers.Split(Regex(PATTERN), behavior="isolated", invert=False)

_ENGLISH = re.compile("[A-Za-z]+")  # only letters: no need to look at each
_PRETOKEN = re.compile("[.,;:!?]| [A-Za-z]+")  # a pre-token within a match of the next pattern
_ENGLISH_WORDS = re.compile("(?:[.,;:!?]? [A-Za-z]+)+")

# U+017F, the long s, is an "s" to a case-insensitive expression.
_CONTRACTIONS = frozenset(("'s", "'ſ", "'t", "'m", "'d", "'re", "'ve", "'ll"))


class CharClass(IntEnum):  # its hash, unlike Enum's, is not computed in Python
    LETTER = auto()
    NUMBER = auto()
    NEWLINE = auto()
    SPACE = auto()
    OTHER = auto()


class _Open(IntEnum):
    """What the open pre-token is, which decides what can still join it."""

    NOTHING = auto()
    WHITE = auto()
    LEAD = auto()
    """One character that may lead a word or punctuation."""
    WORD = auto()
    PUNCTUATION = auto()
    ENDED_PUNCTUATION = auto()
    """Punctuation, then newlines."""


_LETTER, _NUMBER, _NEWLINE = CharClass.LETTER, CharClass.NUMBER, CharClass.NEWLINE
_SPACE, _OTHER = CharClass.SPACE, CharClass.OTHER

# (open pre-token, class of the next character) -> the open pre-token after it. A pair that is not
# here closes the pre-token, and the character starts a new one.
_JOINS = {
    (_Open.WHITE, _SPACE): _Open.WHITE,
    (_Open.WHITE, _NEWLINE): _Open.WHITE,
    (_Open.LEAD, _LETTER): _Open.WORD,
    (_Open.LEAD, _OTHER): _Open.PUNCTUATION,
    (_Open.LEAD, _NEWLINE): _Open.ENDED_PUNCTUATION,
    (_Open.WORD, _LETTER): _Open.WORD,
    (_Open.PUNCTUATION, _OTHER): _Open.PUNCTUATION,
    (_Open.PUNCTUATION, _NEWLINE): _Open.ENDED_PUNCTUATION,
    (_Open.ENDED_PUNCTUATION, _NEWLINE): _Open.ENDED_PUNCTUATION,
}
_JOINING = {state: frozenset(kind for before, kind in _JOINS if before is state) for state in _Open}
_STARTS = {
    _LETTER: _Open.WORD,
    _OTHER: _Open.LEAD,
    _SPACE: _Open.WHITE,
    _NEWLINE: _Open.WHITE,
}


def split(text: str) -> list[str]:
    """Return the pre-tokens of a whole text, by the library."""
    return [piece for piece, _ in SPLIT.pre_tokenize_str(text)]


@lru_cache(maxsize=16384)
def char_class(char: str) -> CharClass:
    """Return how `PATTERN` sees one character."""
    if char in "\r\n":
        return _NEWLINE
    if len(split("a" + char)) == 1:
        return _LETTER
    if len(split(char + char)) == 2:
        return _NUMBER
    return _OTHER if len(split("!" + char)) == 1 else _SPACE


class PreTokenBuffer:
    """Cuts a growing text into pre-tokens. `open` is the text of the one that may still grow."""

    def __init__(self) -> None:
        self.open = ""
        self._state = _Open.NOTHING

    @property
    def is_white(self) -> bool:
        """Whether the open text is white space whose cuts are not decided."""
        return self._state is _Open.WHITE

    @property
    def joining(self) -> frozenset[CharClass]:
        """The classes of characters that can join the open pre-token."""
        return _JOINING[self._state]

    def feed(self, text: str) -> list[str]:
        """Add normalised text; return the pre-tokens it completed, in order."""
        closed: list[str] = []
        at = 0
        while at < len(text):
            if self._state is _Open.WORD and (words := _ENGLISH_WORDS.match(text, at)):
                closed.append(self.open)
                closed += _PRETOKEN.findall(words.group())
                self.open = closed.pop()
                at = words.end()
                continue
            char = text[at]
            kind = char_class(char)
            self._decide(kind, closed)
            word = _ENGLISH.match(text, at) if self.open[:1] != "'" else None
            if word:
                self._state = _Open.WORD
                self.open += word.group()
                at = word.end()
            else:
                self._add(char, kind, closed)
                at += 1
        return closed

    def expect(self, kind: CharClass) -> list[str]:
        """Return the pre-tokens that are complete because the next character is of class `kind`."""
        closed: list[str] = []
        self._decide(kind, closed)
        return closed

    def flush(self) -> list[str]:
        """Close everything, as if the text ended here."""
        closed: list[str] = []
        if self._state is _Open.WHITE:
            closed = [part for part in self._cut_after_newlines() if part]
        elif self.open:
            closed = [self.open]
        self._reset()
        return closed

    def _decide(self, kind: CharClass, closed: list[str]) -> None:
        """Close the open pre-token if a character of class `kind` does not join it. Idempotent."""
        if self._state is _Open.NOTHING or (self._state, kind) in _JOINS:
            return
        if self._state is _Open.WHITE:
            self._decide_white(kind, closed)
        else:
            closed.append(self.open)
            self._reset()

    def _decide_white(self, kind: CharClass, closed: list[str]) -> None:
        """Cut white space before a character of class `kind`, which may take its last one."""
        lines, spaces = self._cut_after_newlines()
        last = spaces[-1:]
        parts = [lines, spaces[:-1]]
        self._reset()
        if kind is _LETTER or (kind is _OTHER and last == " "):
            self.open = last
            self._state = _Open.LEAD if last else _Open.NOTHING
        else:
            parts.append(last)
        closed.extend(part for part in parts if part)

    def _add(self, char: str, kind: CharClass, closed: list[str]) -> None:
        if kind is _NUMBER:
            closed.append(char)
            return
        self._state = _JOINS.get((self._state, kind)) or _STARTS[kind]
        self.open += char
        if self.open[0] == "'" and len(self.open) <= 3 and self.open.lower() in _CONTRACTIONS:
            closed.append(self.open)
            self._reset()

    def _cut_after_newlines(self) -> tuple[str, str]:
        end = max(self.open.rfind("\n"), self.open.rfind("\r")) + 1
        return self.open[:end], self.open[end:]

    def _reset(self) -> None:
        self.open = ""
        self._state = _Open.NOTHING
