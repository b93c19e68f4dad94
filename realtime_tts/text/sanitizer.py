"""Removes what must never reach a tokenizer: half characters, control characters, floods of
accents.

`Sanitizer` works on deltas and gives, for any split of a text, the same result as for the whole;
the result always encodes as UTF-8 and is a fixed point.
"""

from __future__ import annotations

import re
import unicodedata

from realtime_tts.text.spans import OffsetMap

MAX_MARKS = 10
"""Combining marks kept after one character; stacked scripts (Tibetan, Burmese) need about seven."""

_CLEAN = re.compile(r"[\n\t -~]*")
_LINE_BREAKS = "\r\v\f\x85"
_REPLACEMENT = "\ufffd"


def _is_low(char: str) -> bool:
    return "\udc00" <= char <= "\udfff"


class Sanitizer:
    """Removes control characters except newline and tab, and repairs what JSON may carry.

    - Surrogates: a pair becomes its character, also when cut between two deltas; a lone one U+FFFD.
    - Carriage return (alone or before a newline), vertical tab, form feed and U+0085: a newline.
    - Combining marks after the `MAX_MARKS`-th of one character are dropped.

    `offsets` maps the result's offsets to the source's. At most one character is held: a high
    surrogate at the end of a delta.
    """

    def __init__(self) -> None:
        self.offsets = OffsetMap()
        self._high = ""
        self._after_return = False
        self._marks = 0
        self._read = 0  # source characters dealt with
        self._written = 0

    def feed(self, delta: str) -> str:
        if not self._high and not self._after_return and _CLEAN.fullmatch(delta):
            if delta:
                self._marks = 0
            self._read += len(delta)
            self._written += len(delta)
            return delta
        return "".join(self._take(char) for char in delta)

    def flush(self) -> str:
        """Release a held high surrogate. Later text may follow."""
        return self._take_lone_high() if self._high else ""

    def _take(self, char: str) -> str:
        if self._high and _is_low(char):
            pair = (self._high + char).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
            self._high = ""
            return self._put(self._limit_marks(pair), 2)
        before = self._take_lone_high() if self._high else ""
        if "\ud800" <= char <= "\udbff":  # the first half of a pair
            self._high = char
            self._after_return = False
            return before
        return before + self._put(self._clean(char), 1)

    def _take_lone_high(self) -> str:
        self._high = ""
        self._marks = 0
        return self._put(_REPLACEMENT, 1)

    def _clean(self, char: str) -> str:
        """Return what one character becomes: itself, a replacement, or nothing."""
        after_return, self._after_return = self._after_return, char == "\r"
        clean = char
        if _is_low(char):
            clean = _REPLACEMENT
        elif char in _LINE_BREAKS:
            clean = "\n"
        elif char == "\n" and after_return:
            clean = ""
        elif unicodedata.category(char) == "Cc" and char not in "\n\t":
            clean = ""
        return self._limit_marks(clean) if clean else clean

    def _limit_marks(self, char: str) -> str:
        if not unicodedata.category(char).startswith("M"):
            self._marks = 0
            return char
        self._marks += 1
        return char if self._marks <= MAX_MARKS else ""

    def _put(self, text: str, width: int) -> str:
        """Account for `width` source characters that became `text`."""
        self._read += width
        self._written += len(text)
        self.offsets.mark(self._written, self._read)
        return text
