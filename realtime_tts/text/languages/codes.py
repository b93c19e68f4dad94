"""Words of letters and digits that are no numbers: UUIDs, the addresses of network cards, and what
a language knows: q8h, PT1H30M."""

from __future__ import annotations

import re
import string
from functools import cache

from realtime_tts.text.languages.amounts import NOTHING, Reading
from realtime_tts.text.languages.language import Language
from realtime_tts.text.languages.patterns import MAX_WORD
from realtime_tts.text.languages.rules import first_of

_HEX = "[0-9a-fA-F]"
_HEXADECIMAL = re.compile(
    rf"(?:{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}|{_HEX}{{2}}(?::{_HEX}{{2}}){{5}})(?![\w:-])"
)
_EXAMPLES = ("00000000-0000-0000-0000-000000000000", "00:00:00:00:00:00")
_GROUP = re.compile(r"\w+")
_CODE = re.compile(rf"[\w–-]{{0,{MAX_WORD}}}")


class CodeReader:
    """Reads the codes of one language. Get one from `codes_for`."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self.first = frozenset(string.hexdigits) | {head[0] for head in language.code_heads}
        """The characters that codes begin with."""
        starts = [head[:n] for head in language.code_heads for n in range(1, len(head) + 1)]
        begun = "".join(f"|{head}\\d" for head in language.code_heads)
        opened = "".join(f"|{start}" for start in starts)
        self.may_begin = re.compile(
            rf"{_HEX}{{8}}-|{_HEX}{{2}}:{begun}|(?:{_HEX}{{1,8}}{opened})\Z"
        ).match
        """Returns whether a code may begin at a place in a text. Cheap: called for many words."""

    def read(self, text: str, at: int, before: str, ended: bool) -> Reading | None:
        """Return the words for the code at `at`, the beginning of a word; length 0 if there is
        none; None if more text is needed. `before` is the text before it."""
        found = self._hexadecimal(text, at, ended)
        if found is None or found.length:
            return found
        word = _CODE.match(text, at)
        assert word is not None
        code = word.group()
        for head in self._language.code_heads:
            begins = code.startswith(head) and code[len(head) :][:1].isdecimal()
            is_open = word.end() == len(text) and not ended and len(code) < MAX_WORD
            if is_open and (begins or head.startswith(code)):
                return None
            if begins:
                return first_of(self._language.codes, code, before) or NOTHING
        return NOTHING

    def _hexadecimal(self, text: str, at: int, ended: bool) -> Reading | None:
        """Read an identifier character by character, in its groups."""
        rest, lang = text[at : at + len(_EXAMPLES[0]) + 1], self._language
        for example in _EXAMPLES if not ended else ():
            if len(rest) <= len(example) and _HEXADECIMAL.match(rest + example[len(rest) :]):
                return None
        match = _HEXADECIMAL.match(rest)
        if match is None:
            return NOTHING
        groups = [
            [lang.digits(char) if char.isdecimal() else char.upper() for char in group]
            for group in _GROUP.findall(match.group())
        ]
        space, comma = (" ", ", ") if lang.spaced else ("", "，")
        return Reading(match.end(), comma.join(map(space.join, groups)))


codes_for = cache(CodeReader)
"""Return the `CodeReader` of a language, which all sessions share."""
