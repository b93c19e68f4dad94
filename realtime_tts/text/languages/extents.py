"""How far a number may reach: which words behind it could still belong to it."""

from __future__ import annotations

import re
from collections.abc import Callable

from realtime_tts.text.characters import NO_SPACES
from realtime_tts.text.languages.language import Language

MAX_WORD = 64
CLOSERS = ".,;:!?)]}\"'’”…"
_MAX_WORDS = 6
_WORD = re.compile(rf"[^\s<{NO_SPACES}]{{1,{MAX_WORD}}}")
_CHINESE = re.compile(
    r"[0-9A-Za-z.,:/%°℃$€£¥￥₹²³+\-−–—~½¼¾⅓⅔⅛年月日个位只条张本次天周名件块杯种岁点万亿]{1,48}"
)
_SPACES = " \u00a0\u202f"
_RUN = re.compile(rf"[0-9]{{1,4}},?(?: [0-9]{{1,4}},?){{{_MAX_WORDS - 1}}}(?= )")
"""A run of as many short numbers as an extent may have words, which need not be looked at
singly."""


class NumberExtents:
    """Knows the units, scales, months and signs that may stand behind a number."""

    def __init__(self, language: Language) -> None:
        self.language = language
        lang = language
        followers = {*lang.units, *lang.scales, *lang.currencies, *lang.halves, *lang.months}
        followers |= {*lang.clock_words, *(["x", "–"] if lang.spaced else [])}
        self._followers = frozenset(followers)
        self._starts = frozenset(word[:n] for word in followers for n in range(1, len(word) + 1))
        self._going_on = frozenset({*lang.scales, *lang.months, *lang.clock_words, "x", "–"})

    def extent(self, text: str, at: int, ended: bool, stop: Callable[[str], bool]) -> int | None:
        """The end of what may belong to the number at `at`; None if more text is needed for it.

        The answer never changes when text is added. `stop` says of a word that it does not follow.
        """
        if not self.language.spaced:
            run = _CHINESE.match(text, at)
            end = run.end() if run else at + 1
            return end if ended or end < len(text) or end - at >= 48 else None
        run = _RUN.match(text, at)
        if run and not any(stop(word.rstrip(CLOSERS)) for word in run.group().split(" ")[1:]):
            return run.end()
        end = at
        for count in range(_MAX_WORDS):
            match = _WORD.match(text, end + bool(count))
            if match is None:
                # A space, and then none, or no word at all.
                return end if ended or len(text) > end + bool(count) else None
            word, open_end = match.group(), match.end() == len(text)
            if open_end and not ended and len(word) < MAX_WORD:
                return end if count and not self._may_follow(word) else None
            if count and not (self._follows(word) and not stop(word.rstrip(CLOSERS))):
                return end
            end = match.end()
            if not self._goes_on(word) or (end < len(text) and text[end] not in _SPACES):
                return end
            if end == len(text):
                return end if ended else None
        return end

    def _may_follow(self, start: str) -> bool:
        bare = start.rstrip(CLOSERS)
        return (
            start[0].isdigit()
            or start[0] in "°%(€$£½¼¾⅓⅔⅛"
            or not bare
            or (start in self._starts or bare in self._starts)
        )

    def _follows(self, word: str) -> bool:
        return self._may_follow(word) and (
            word[0].isdigit()
            or not word[0].isalpha()
            or word in self._followers
            or word.rstrip(CLOSERS) in self._followers
        )

    def _goes_on(self, word: str) -> bool:
        """Whether a word behind this one may belong to the same number."""
        if word in self._going_on or word.rstrip(".,") in self.language.months:
            return True
        bare = word.rstrip(",." if self.language.dotted_ordinals else ",")
        if not bare or not any(map(str.isdigit, bare)):
            return False
        return (bare == word or len(bare) <= 4) and (bare[-1].isalnum() or bare[-1] in ")½¼¾⅓⅔⅛%°")
