"""Finds numbers: a language's regular expressions, compiled once from its signs and customs, and
which words behind a number may still belong to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from realtime_tts.text.characters import NO_SPACES
from realtime_tts.text.languages.language import Language

SIGNS = "$€£¥￥₹₩₽₿"
MINUS = "-−"
VULGAR = {"½": (1, 2), "¼": (1, 4), "¾": (3, 4), "⅓": (1, 3), "⅔": (2, 3), "⅛": (1, 8)} | {
    "⅜": (3, 8),
    "⅝": (5, 8),
    "⅞": (7, 8),
    "⅕": (1, 5),
    "⅖": (2, 5),
    "⅗": (3, 5),
    "⅘": (4, 5),
}
_NEVER = "(?!)"
_SPACE = "[ \u00a0\u202f]?"
_SHORT_SCALE = 2  # letters: k, M, bn are scales of money only


class Patterns:
    """The patterns by which numbers are found in one language's text.

    `number` has no groups; the groups of the others are named for what they hold.
    """

    spaced_dash = re.compile(r" [-–] ")
    iso_date = re.compile(r"(?P<year>\d{4})-(?P<month>0\d|1[0-2])-(?P<day>[0-2]\d|3[01])(?![\d-])")
    version = re.compile(r"\d+(?:\.\d+){2,}(?!\d)")
    dotted = re.compile(r"\d+\.\d+(?![\d.])")
    decade = re.compile(r"(?P<year>1[1-9]\d0|20\d0|[2-9]0)['’]?s(?!\w)")
    fraction = re.compile(r"(?P<sign>[-−+±])?(?P<above>\d{1,3})/(?P<below>\d{1,4})(?![\d/])")
    short_phone = re.compile(r"\d{3,6}(?![\d.,%-]*[\d%])")

    def __init__(self, language: Language) -> None:
        self._ordinal_marks = language.ordinal_marks or _NEVER
        self._end = r"(?!\w)" if language.spaced else r"(?![A-Za-z0-9])"
        # A long dash is a range in Chinese; elsewhere, another thought begins: it is $84—$6 more.
        self._dashes = "-–" if language.spaced else "-–—"
        self.dash = re.compile(rf"[{self._dashes}](?! )")
        self.time_dash = re.compile(rf"[{self._dashes}](?! )| [-–] ")
        self.until_hour = re.compile(rf"[{self._dashes}](?P<hour>1?\d|2[0-4])(?!\w|[.,:%/-]\w)")
        self._quantities(language)
        self._times(language)
        self._dates(language)
        self.glued = re.compile(language.glued or _NEVER)
        area = r"(?: ?\(0\)(?:\d(?!\d))?|(?<=\d\d)[ .-]\(?\d\)?(?!\d))?"  # (0), or a single digit
        abroad = rf"\+\d{{1,3}}{area}(?:[ .-]?\(?\d{{2,4}}\)?){{2,5}}"
        self.phone = re.compile(rf"(?:{language.phones or _NEVER}|{abroad})(?!\w)")

    def _quantities(self, language: Language) -> None:
        groups, mark = re.escape(language.group_marks), re.escape(language.decimal_mark)
        indian = r"\d{1,2}(?:,\d\d)+,\d{3}(?!\d)" if "," in language.group_marks else _NEVER
        whole = rf"(?:\d{{1,3}}(?:[{groups}]\d{{3}})+(?!\d)|{indian}|\d+)"
        number = rf"{whole}(?:{mark}\d+)?(?!\d)"
        long_scales = [name for name in language.scales if not _is_short(name)]
        short_scales = [name for name in language.scales if _is_short(name)]
        loose = [name for name in short_scales if name not in language.units]
        units = [*language.units, *language.currencies]
        spaced = _any(name for name in language.units if " " in name and name.isascii())
        named = _any(f"{above}/{below}" for above, below in language.fractions if above < 10)
        parts = f"[ -](?:{named})" if language.spaced else r" \d/\d{1,2}"
        self.number = re.compile(number)
        codes = [name for name in language.currencies if name.isalpha() and len(name) == 3]
        prefixes = [name for name in language.currencies if len(name) > 1 and name.endswith("$")]
        behind = [*codes, *language.behind_money]
        self.money_heads = frozenset([*codes, *(name.rstrip("$") for name in prefixes)])
        many = rf"(?(currency)1(?:0{{0,2}}[kKM]|00+|(?:,000)+){self._end}|{_NEVER})"  # $3/1M tokens
        hours = _any(name for name in ("h", "hr", "hrs") if name in language.units)
        each = rf"[1-9]0+ ?(?:g|km|m[lL])|(?:6|8|12|24) ?(?:{hours})|{many}"  # 5 €/100 g, 5 mg/24 h
        self.quantity = re.compile(
            rf"(?P<sign>[{MINUS}+±])?"
            rf"(?P<currency>{_any(prefixes)}|[{SIGNS}]|(?:{_any(codes)})(?= ))?"
            rf"(?(currency) ?)(?P<inner>(?(currency)[{MINUS}]|{_NEVER}))?"
            rf"(?P<number>{number}|{mark}\d+)"
            rf"(?P<part>{_SPACE}[{''.join(VULGAR)}]|{parts}(?![\d/]))?"
            rf"(?:{_SPACE}(?P<scale>{_any(long_scales)}){self._end if language.spaced else ''}"
            rf"|(?P<short>(?(currency)(?:{_any(short_scales)})|(?:{_any(loose)}))){self._end})?"
            rf"(?(currency)(?: (?P<behind>{_any(behind)}){self._end})?"
            rf"|(?:{_SPACE}(?P<unit>{_any(units)}){self._end}|{_SPACE}(?P<percent>%)"
            rf"|(?P<degrees>°)(?![A-Za-z]))?)"
            rf"(?P<per>(?:/(?:{spaced}|{each}|[^\W\d_]+[²³23]?))+{self._end})?"
        )
        self.behind_fraction = re.compile(
            rf"{_SPACE}(?:%|(?P<unit>{_any(language.units)}){self._end})"
        )
        self.ordinal = re.compile(rf"(?P<number>{whole})(?P<mark>{self._ordinal_marks})(?!\w)")

    def _times(self, language: Language) -> None:
        half = rf"{_SPACE}(?P<half>{_any(language.halves)}){self._end}"
        self.hour = re.compile(rf"(?P<hour>\d{{1,2}}){half}")
        self.hours = re.compile(
            rf"(?P<hour>\d{{1,2}})(?:[{self._dashes}]| [-–] )"
            rf"(?=\d{{1,2}}(?::[0-5]\d)?{half}|\d{{1,2}}:[0-5]\d(?!:?\d))"
        )
        until = rf"(?:[{self._dashes}]\d{{1,2}}(?:[.:][0-5]\d)?)?"
        dot = rf"\.(?=[0-5]\d{until}{_SPACE}(?:{_any(language.halves)}){self._end})"
        self.time = re.compile(
            rf"(?P<hour>\d{{1,2}})(?::|{dot})(?P<minute>[0-5]\d)"
            r"(?::(?P<second>[0-5]\d))?(?!:?\d)"
            rf"(?:{half})?(?:{_SPACE}(?:{_any(language.clock_words)}){self._end})?"
        )

    def _dates(self, language: Language) -> None:
        mark, months = re.escape(language.date_mark), _any(language.months)
        ordinal = rf"(?:{self._ordinal_marks})?"
        dot = r"\." if language.dotted_ordinals else ""
        self.date = re.compile(
            rf"(?P<one>\d{{1,2}}){mark}(?P<two>\d{{1,2}}){mark}(?P<year>\d{{4}})(?![\d{mark}]*\d)"
        )
        self.day_month = re.compile(
            rf"(?P<day>\d{{1,2}}){ordinal}{dot} (?P<month>{months})(?!\w)"
            r"(?:\.?,? (?P<year>\d{4})(?!:?\d))?"
        )
        self.month_year = re.compile(rf"(?P<month>{months})(?!\w)\.? (?P<year>\d{{4}})(?!:?\d)")
        self.month_days = re.compile(
            rf"(?P<month>{months})(?!\w)\.? (?P<one>\d{{1,2}}){ordinal}(?:[{self._dashes}]| [-–] )"
            rf"(?P<two>\d{{1,2}}){ordinal}(?![\w/:%-]|[.,]\d| ?[AaPp]\.?[Mm])"
            r"(?:,? (?P<year>\d{4})(?!:?\d))?"
        )
        self.month_day = re.compile(
            rf"(?P<month>{months})(?!\w)\.? (?P<day>\d{{1,2}}){ordinal}(?![\d:%/]|[.,]\d)"
            r"(?:,? (?P<year>\d{4})(?!:?\d))?"
        )


def _is_short(scale: str) -> bool:
    return len(scale) <= _SHORT_SCALE and scale.isascii() and scale != "Md"


def _any(names: Iterable[str]) -> str:
    """Return a pattern for any of these, the longest first; without names it never matches."""
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) or _NEVER


MAX_WORD = 64
CLOSERS = ".,;:!?)]}\"'’”…"
_BEHIND_STOP = CLOSERS.replace(".", "")
"""Marks that may follow a unit's own full stop: 320 p., 5 Stk.)."""
_MAX_WORDS = 6
_WORD = re.compile(rf"[^\s<{NO_SPACES}]{{1,{MAX_WORD}}}")
_CHINESE = re.compile(
    r"[0-9A-Za-zμµΩ.,:/%‰°℃㎡$€£¥￥₹²³+±\-−–—~·½¼¾⅓⅔⅛年月日个位只条张本次天周名件块杯种岁点万亿]{1,48}"
)
_ATTACHED = re.compile(r"(?<=.)[/–-]")
"""A mark behind a unit, such as in mg/kg or a.m.–2, with which something else begins."""
_SPACES = " \u00a0\u202f"
_RUN = re.compile(rf"[0-9]{{1,4}},?(?: [0-9]{{1,4}},?){{{_MAX_WORDS - 1}}}(?= )")
"""A run of as many short numbers as an extent may have words; they need no look one by one."""


class NumberExtents:
    """Finds how far a number may extend: which units, scales, months and signs stand behind it."""

    def __init__(self, language: Language) -> None:
        self.language = language
        lang = language
        followers = {*lang.units, *lang.scales, *lang.currencies, *lang.halves, *lang.months}
        followers |= {*lang.clock_words, *(["x", "–"] if lang.spaced else [])}
        phrases = [*lang.units, *lang.halves]
        parts = [part for name in phrases if " " in name for part in name.split()]
        followers |= {*lang.followers, *lang.behind_money, *parts}
        self._followers = frozenset(followers)
        self._starts = frozenset(word[:n] for word in followers for n in range(1, len(word) + 1))
        codes = [name for name in lang.currencies if name.isalpha()]
        going_on = {*lang.scales, *lang.months, *lang.clock_words, "x", "–", *codes, *lang.halves}
        going_on |= {*SIGNS, *(name for name in lang.currencies if name[-1] == "$")}
        going_on |= {*parts, *(lang.followers & {"in", "-", "×"})}
        self._going_on = frozenset(going_on)

    def extent(self, text: str, at: int, ended: bool, stop: Callable[[str], bool]) -> int | None:
        """Return the end of what may belong to the number at `at`; None if more text is needed.

        The answer never changes when text is added. `stop` returns whether a word cannot belong to
        it.
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
                # A space without a word behind it, or no word at all.
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
        bare = _ATTACHED.split(start, maxsplit=1)[0].rstrip(CLOSERS)
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
            or word.rstrip(_BEHIND_STOP) in self._followers
            or _ATTACHED.split(word, maxsplit=1)[0] in self._followers
        )

    def _goes_on(self, word: str) -> bool:
        """Return whether a word behind this one may belong to the same number."""
        if word in self._going_on or word.rstrip(".,") in self.language.months:
            return True
        bare = word.rstrip(",." if self.language.dotted_ordinals else ",")
        if not bare or not any(map(str.isnumeric, bare)):
            return False
        return (bare == word or len(bare) <= 4) and (
            bare[-1].isalnum() or bare[-1] in ")½¼¾⅓⅔⅛%°'’′"
        )
