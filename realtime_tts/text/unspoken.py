"""Text that is ready to be spoken and waits, and where it may be cut."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from enum import IntEnum

from realtime_tts.text.characters import (
    CLOSERS,
    JOINED,
    MARKS,
    NO_SPACES,
    OPENERS,
    PAUSES,
    SENTENCE_ENDS,
    writes_without_spaces,
)
from realtime_tts.text.directions import Seam
from realtime_tts.text.full_stops import ends_no_sentence, is_before_name
from realtime_tts.text.spans import Piece, part_of

_BREAK = "\x1e"  # stands for a seam: a white space that filtered text never has
_CONTEXT = 16  # characters that show whether a mark ends a sentence
_BEFORE_TEXT, _AFTER_MARK = re.escape(OPENERS), re.escape(CLOSERS)
_DIGIT = "0-9０-９"
_ENDS = re.compile(
    rf"\S\s|{_BREAK}"
    rf"|(?:[{MARKS}](?!(?<=[{_DIGIT}].)[{_DIGIT}])|(?<=[{MARKS}{_AFTER_MARK}])[{_AFTER_MARK}])"
    rf"[{MARKS}{_AFTER_MARK}]{{0,64}}+(?:(?=[{NO_SPACES}])|(?<=[{NO_SPACES}])(?=[\w{_BEFORE_TEXT}]))"
    rf"|(?![{_DIGIT}{MARKS}{_BEFORE_TEXT}])[{NO_SPACES}](?=\w)(?![{JOINED}])"
)
"""Where text may be cut: not between a mark and what closes the quotation, nor in １，０００."""
_CLOSERS = f"{CLOSERS}\"'*_ "
_OPEN_OR_CLOSE = "“‘«"
"""Quotation marks that close behind a mark in German: „Nein!“, »Nein!«."""
_SPEECH_CLOSERS = "」』”’》｣"
_AFTER_SPEECH = re.compile(rf"[\"'{_OPEN_OR_CLOSE}{_AFTER_MARK}] \Z")
_CLOSES = re.compile(rf"[{_AFTER_MARK}](?!\w)")
_DASH = re.compile(r"[—–-] ?(?P<letter>.)")
_INITIAL = re.compile(r"(?:^|[\s.(])[^\W\d_]\.$")
_ITEM = re.compile(r"\s?\d{1,3}\. ")
"""The number of an item of a list."""


class End(IntEnum):
    """What ends at a place where text may be cut; a higher end includes all lower ones."""

    WORD = 0
    CLAUSE = 1
    SENTENCE = 2
    BREAK = 3


def end_of(text: str) -> End | None:
    """Return what `text` ends with, white space aside; None: perhaps in the middle of a word."""
    bare = text.rstrip()
    said = bare.rstrip(_CLOSERS)[-_CONTEXT:]
    if said[-1:] in tuple(_OPEN_OR_CLOSE) and said[-2:-1] in tuple(".!?…"):
        said = said[:-1]
    if _BREAK in text[len(bare) :]:
        return End.BREAK
    if not said or "\n" in text[len(bare) :]:
        return End.SENTENCE
    if said[-1] in SENTENCE_ENDS:
        return End.WORD if _INITIAL.search(said) or is_before_name(said) else End.SENTENCE
    if said[-1] in PAUSES:
        return End.CLAUSE
    return End.WORD if len(bare) < len(text) or writes_without_spaces(bare[-1]) else None


def _end_between(before: str, following: str) -> End:
    """Return what ends where the mark of a sentence stands between these texts."""
    if before[-1] == "\n":
        return End.SENTENCE
    if _CLOSES.match(following):
        return End.WORD  # « Oui ! »
    if before.endswith(". ") and ends_no_sentence(before, following):
        return End.WORD
    dash = _DASH.match(following)
    goes_on = dash["letter"] if dash else following[:1] if _AFTER_SPEECH.search(before) else ""
    if goes_on.islower() or (following and before[-1] in _SPEECH_CLOSERS):
        return End.CLAUSE  # "No!" he said. – No! – he said. 「はい。」と言った
    return End.SENTENCE


class UnspokenText:
    """Text that waits: `add` what is ready, `take` what will be spoken. Counts are in characters.

    A cut never falls inside a word or a number: the white space behind a word shows that it is
    complete. Where a script writes no spaces, any two letters may be split. Ends are searched only
    as far as asked for, and each character is looked at once.
    """

    def __init__(self) -> None:
        self.text = ""
        """The text that waits; a break in it is one character of white space."""
        self._items: deque[Piece | Seam] = deque()
        # These count from the beginning of all text, of which `_taken` characters were taken.
        self._taken = 0
        self._numbers: deque[tuple[int, int]] = deque()
        """Ranges of text, not looked at yet, that stand for something else."""
        self._found: deque[tuple[int, End]] = deque()
        """Offsets where the text may be cut, and what ends there."""
        self._looked_at = 0
        self._sentence_at = 0
        """Where the last sentence that was found ends."""

    def add(self, items: Iterable[Piece | Seam]) -> None:
        """Add text behind what waits."""
        parts, length = [self.text], self._taken + len(self.text)
        for item in items:
            text = _BREAK if isinstance(item, Seam) else item.text
            if text:
                if isinstance(item, Piece) and not item.direct:
                    self._numbers.append((length, length + len(text)))
                self._items.append(item)
                parts.append(text)
                length += len(text)
        self.text = "".join(parts)

    @property
    def words(self) -> int:
        """Number of words that are complete."""
        self._look(len(self.text))
        return len(self._found)

    def _look(self, within: int) -> None:
        """Find the ends in the first `within` characters."""
        text, taken = self.text, self._taken
        within = min(within, len(text))
        for match in _ENDS.finditer(text, self._looked_at - taken, within + 1):
            if match.end() > within:
                break  # what follows it was not seen
            at = self._looked_at = taken + match.end()
            while self._numbers and self._numbers[0][1] <= at:
                self._numbers.popleft()
            before = text[max(0, match.end() - _CONTEXT) : match.end()]
            end = end_of(before)
            if end is End.SENTENCE:
                end = _end_between(before, text[match.end() : match.end() + 12])
            if end is not None and end >= End.SENTENCE:
                begun, self._sentence_at = self._sentence_at - taken, at
                if begun >= 0 and _ITEM.fullmatch(text, begun, match.end()):
                    end = End.WORD
            if end is not None and not (self._numbers and self._numbers[0][0] < at):
                self._found.append((at, end))
        # The last character may yet be part of an end.
        self._looked_at = max(self._looked_at, taken + within - 1)

    def last(self, end: End, within: int | None = None) -> int:
        """Return the length up to the last such end, in the first `within`; 0 if there is none."""
        within = len(self.text) if within is None else within
        self._look(within)
        for at, found in reversed(self._found):
            if found >= end and at - self._taken <= within:
                return at - self._taken
        return 0

    def first(self, end: End) -> int:
        """Return the length up to the first such end; 0 if there is none."""
        if end is End.BREAK:
            return self.text.find(_BREAK) + 1
        self._look(len(self.text))
        return next((at - self._taken for at, found in self._found if found >= end), 0)

    @property
    def start(self) -> int:
        """Offset of the waiting text, which is not empty, in the text that it was made of."""
        return next((item.start for item in self._items if isinstance(item, Piece)), 0)

    def count_before(self, is_before: Callable[[int], bool]) -> int:
        """Count the characters before the first whose offset in the source is not `is_before`."""
        count = 0
        for item in self._items:
            if isinstance(item, Seam):
                count += 1
                continue
            # What is not one to one has one offset for all of its characters.
            offsets = range(item.start, item.end) if item.direct else [item.start] * len(item.text)
            for at in offsets:
                if not is_before(at):
                    return count
                count += 1
        return count

    def take(self, count: int) -> list[Piece | Seam]:
        """Remove and return the first `count` characters."""
        taken: list[Piece | Seam] = []
        if count < len(self.text):
            self._look(count + 1)  # white space behind the cut ends a word before it
        self.text = self.text[count:]
        self._taken += count
        self._looked_at = max(self._looked_at, self._taken)
        while self._found and self._found[0][0] <= self._taken:
            self._found.popleft()
        while count:
            item = self._items.popleft()
            length = 1 if isinstance(item, Seam) else len(item.text)
            if isinstance(item, Piece) and length > count:
                self._items.appendleft(part_of(item, count, length))
                item = part_of(item, 0, count)
            taken.append(item)
            count -= min(count, length)
        return taken
