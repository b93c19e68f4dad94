"""Scripts that a voice cannot speak: their text is left out, and the client gets their names.

A model that never heard Cyrillic makes noise of it. What a voice can speak follows from the
languages of its checkpoint; Latin letters, digits and marks are read by every voice. So is a single
Greek letter directly beside another letter or a digit: 5 μm and 5 m are not the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from realtime_tts.languages import AUTO
from realtime_tts.text.characters import character_class
from realtime_tts.text.directions import Seam
from realtime_tts.text.spans import Piece, part_of, without_first

SCRIPTS = {
    "Greek": character_class((0x370, 0x3FF), (0x1F00, 0x1FFF)),
    "Cyrillic": character_class((0x400, 0x52F), (0x1C80, 0x1C8F), (0x2DE0, 0x2DFF)),
    "Armenian": character_class((0x531, 0x58A)),
    "Hebrew": character_class((0x591, 0x5F4), (0xFB1D, 0xFB4F)),
    "Arabic": character_class(
        *((0x610, 0x61A), (0x620, 0x65F), (0x66E, 0x6D3), (0x6D5, 0x6EF), (0x6FA, 0x6FF)),
        *((0x750, 0x77F), (0x8A0, 0x8FF), (0xFB50, 0xFDFF), (0xFE70, 0xFEFC)),
    ),
    "Devanagari": character_class((0x900, 0x963), (0x971, 0x97F)),
    "Bengali": character_class((0x980, 0x9E3), (0x9F0, 0x9F1)),
    "Gurmukhi": character_class((0xA01, 0xA5E), (0xA70, 0xA76)),
    "Gujarati": character_class((0xA81, 0xAE3)),
    "Odia": character_class((0xB01, 0xB63)),
    "Tamil": character_class((0xB82, 0xBD7)),
    "Telugu": character_class((0xC00, 0xC63)),
    "Kannada": character_class((0xC80, 0xCE3)),
    "Malayalam": character_class((0xD00, 0xD63)),
    "Sinhala": character_class((0xD81, 0xDF3)),
    "Thai": character_class((0xE01, 0xE3A), (0xE40, 0xE4E)),
    "Lao": character_class((0xE81, 0xECD)),
    "Tibetan": character_class((0xF40, 0xFBC)),
    "Burmese": character_class((0x1000, 0x103F), (0x1050, 0x108F)),
    "Georgian": character_class((0x10A0, 0x10FF), (0x1C90, 0x1CBF)),
    "Ethiopic": character_class((0x1200, 0x135F)),
    "Khmer": character_class((0x1780, 0x17D3)),
    "Mongolian": character_class((0x1820, 0x18AA)),
    "Hangul": character_class((0x1100, 0x11FF), (0x3131, 0x318E), (0xAC00, 0xD7FB)),
    "Kana": character_class((0x3041, 0x3096), (0x309D, 0x30FA), (0x30FC, 0x30FF), (0xFF66, 0xFF9F)),
    "Chinese": character_class(
        (0x3105, 0x312F), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF)
    ),
}
"""The letters of each script, as the inside of a character class. Digits are read, so not in it."""

_LATIN = (
    "english german french spanish italian portuguese dutch polish czech turkish swedish danish "
    "norwegian finnish romanian hungarian indonesian vietnamese"
).split()
_OF_LANGUAGE = dict.fromkeys(_LATIN, "") | {
    "chinese": "Chinese",
    "japanese": "Chinese Kana",
    "korean": "Hangul Chinese",
    "russian": "Cyrillic",
    "ukrainian": "Cyrillic",
    "bulgarian": "Cyrillic",
    "greek": "Greek",
    "arabic": "Arabic",
    "persian": "Arabic",
    "hebrew": "Hebrew",
    "hindi": "Devanagari",
    "thai": "Thai",
}

_GREEK = re.compile(f"[{SCRIPTS['Greek']}]")


class ScriptGuard:
    """Removes text in scripts that a voice cannot speak. `left_out` names the scripts found."""

    def __init__(self, languages: Iterable[str]) -> None:
        self._foreign = _foreign_to(frozenset(languages))
        self.left_out: dict[str, None] = {}
        self._space = True  # the last character given was white space, or there was none
        self._cut = False  # text behind it was left out
        self._last = ""  # the last character that came
        self._held: Piece | None = None  # a Greek letter: what follows it shows what it is
        self._joined = False  # a symbol may go on with it

    def pass_on(self, said: list[Piece | Seam], *, more: bool = False) -> list[Piece | Seam]:
        """Return what is left; of the spaces around text that is left out, one stays. `more`: text
        may follow directly."""
        if self._foreign is None:
            return said
        left: list[Piece | Seam] = []
        for item in said:
            if isinstance(item, Seam):
                left += [*self._end_hold(""), item]
                self._last = ""
            elif item.text:
                left += self._end_hold(item.text[0])
                left += self._left_of(item)
                self._last = item.text[-1]
            else:
                left.append(item)
        return left if more else [*left, *self._end_hold("")]

    def _end_hold(self, following: str) -> list[Piece]:
        held, self._held = self._held, None
        if held is None:
            return []
        if not _GREEK.match(following) and (self._joined or following.isalnum()):
            return self._given(held)
        self.left_out["Greek"] = None
        self._cut = True
        return []

    def _is_symbol(self, match: re.Match[str]) -> bool | None:
        """Return whether foreign text is a part of a symbol; None if more text is needed."""
        text, at, end = match.string, match.start(), match.end()
        before = text[at - 1] if at else self._last
        if not _GREEK.fullmatch(match.group()) or _GREEK.match(before):
            return False
        self._joined = before.isalnum()
        return None if end == len(text) else self._joined or text[end].isalnum()

    def _left_of(self, piece: Piece) -> list[Piece]:
        assert self._foreign is not None
        if piece.text.isascii() and not self._cut:
            self._space = piece.text[-1].isspace()
            return [piece]
        if not piece.direct:
            return self._given(piece)
        left: list[Piece] = []
        at = 0
        for match in self._foreign.finditer(piece.text):
            symbol = self._is_symbol(match)
            if symbol:
                continue
            left += self._given(part_of(piece, at, match.start() - at))
            if symbol is None:
                self._held = part_of(piece, match.start(), len(match[0]))
                return left
            assert match.lastgroup is not None
            self.left_out[match.lastgroup] = None
            self._cut = True
            at = match.end()
        return left + self._given(without_first(piece, at))

    def _given(self, piece: Piece) -> list[Piece]:
        if self._cut and self._space and piece.text[:1] == " ":
            piece = without_first(piece, 1)
        if not piece.text:
            return []
        self._cut = False
        self._space = piece.text[-1].isspace()
        return [piece]


@cache
def _foreign_to(languages: frozenset[str]) -> re.Pattern[str] | None:
    """Return a pattern for runs of one script that none of the languages is written in. None: there
    are no languages, or one is unknown, so nothing is known to be foreign."""
    known = {"chinese" if name.endswith("_dialect") else name for name in languages} - {AUTO}
    if not known or not known.issubset(_OF_LANGUAGE):
        return None
    own = {script for name in known for script in _OF_LANGUAGE[name].split()}
    runs = [f"(?P<{name}>[{inside}]+)" for name, inside in SCRIPTS.items() if name not in own]
    return re.compile("|".join(runs))
