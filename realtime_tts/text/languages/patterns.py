"""The regular expressions for a language's numbers, compiled once from its signs and customs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from realtime_tts.text.languages.language import Language

SIGNS = "$€£¥￥₹"
DASHES = "-–—"
MINUS = "-−"
VULGAR = {"½": (1, 2), "¼": (1, 4), "¾": (3, 4), "⅓": (1, 3), "⅔": (2, 3), "⅛": (1, 8)}
_SHORT_SCALE = 2  # letters: k, M, bn are scales of money only


class Patterns:
    """`number` has no groups; the groups of the others are named for what they hold."""

    def __init__(self, language: Language) -> None:
        groups, mark = re.escape(language.group_marks), re.escape(language.decimal_mark)
        whole = rf"(?:\d{{1,3}}(?:[{groups}]\d{{3}})+(?!\d)|\d+)"
        number = rf"{whole}(?:{mark}\d+)?(?!\d)"
        space = "[ \u00a0\u202f]?"
        end = r"(?!\w)" if language.spaced else r"(?![A-Za-z0-9])"
        long_scales = [name for name in language.scales if not _is_short(name)]
        short_scales = [name for name in language.scales if _is_short(name)]
        units = [*language.units, *language.currencies]
        halves = _any(language.halves) or "(?!)"
        self.number = re.compile(number)
        self.quantity = re.compile(
            rf"(?P<sign>[{MINUS}+±])?(?P<currency>[{SIGNS}])?(?P<number>{number}|{mark}\d+)"
            rf"(?P<part>{space}[{''.join(VULGAR)}]| \d/\d{{1,2}}(?![\d/]))?"
            rf"(?:{space}(?P<scale>{_any(long_scales) or '(?!)'}){end}"
            rf"|(?P<short>{_any(short_scales) or '(?!)'}){end})?"
            rf"(?:{space}(?P<unit>{_any(units)}){end}|{space}(?P<percent>%)"
            rf"|(?P<degrees>°)(?![A-Za-z]))?"
        )
        self.dash = re.compile(rf"(?P<tight>[{DASHES}])(?! )| [–—] ")
        self.time = re.compile(
            rf"(?P<hour>\d{{1,2}}):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?(?![\d:])"
            rf"(?:{space}(?P<half>{halves}){end})?"
            rf"(?:{space}(?:{_any(language.clock_words) or '(?!)'}){end})?"
        )
        self.hour = re.compile(rf"(?P<hour>\d{{1,2}}){space}(?P<half>{halves}){end}")
        self.glued = re.compile(language.glued or "(?!)")
        self.iso_date = re.compile(
            r"(?P<year>\d{4})-(?P<month>0\d|1[0-2])-(?P<day>[0-2]\d|3[01])(?![\d-])"
        )
        date_mark = re.escape(language.date_mark)
        self.date = re.compile(
            rf"(?P<one>\d{{1,2}}){date_mark}(?P<two>\d{{1,2}}){date_mark}"
            rf"(?P<year>\d{{4}})(?![\d{date_mark}]*\d)"
        )
        months = _any(language.months) or "(?!)"
        ordinal = rf"(?:{language.ordinal_marks or '(?!)'})?"
        dot = r"\." if language.dotted_ordinals else ""
        self.day_month = re.compile(
            rf"(?P<day>\d{{1,2}}){ordinal}{dot} (?P<month>{months})(?!\w)"
            r"(?:\.?,? (?P<year>\d{4})(?![\d:]))?"
        )
        self.month_day = re.compile(
            rf"(?P<month>{months})(?!\w)\.? (?P<day>\d{{1,2}}){ordinal}(?![\d:%/]|[.,]\d)"
            r"(?:,? (?P<year>\d{4})(?![\d:]))?"
        )
        self.version = re.compile(r"\d+(?:\.\d+){2,}(?!\d)")
        self.dotted = re.compile(r"\d+\.\d+(?![\d.])")
        self.decade = re.compile(r"(?P<year>1[1-9]\d0|20\d0|[2-9]0)['’]?s(?!\w)")
        self.ordinal = re.compile(
            rf"(?P<number>{whole})(?P<mark>{language.ordinal_marks or '(?!)'})(?!\w)"
        )
        self.fraction = re.compile(r"(?P<above>\d{1,3})/(?P<below>\d{1,4})(?![\d/])")
        self.phone = re.compile(
            rf"(?:{language.phones or '(?!)'}|\+\d{{1,3}}(?:[ .-]?\(?\d{{2,4}}\)?){{2,5}})(?!\w)"
        )
        self.short_phone = re.compile(r"\d{3,6}(?![\d.,%-]*[\d%])")
        self.by = re.compile(r"(?P<one>\d+) ?[x×] ?(?P<two>\d+)(?!\w)")
        self.counted_two = re.compile("2(?=[个位只条张本次天周名件块杯种岁年点])")
        self.chinese_year = re.compile(r"\d{4}(?=年)")


def _is_short(scale: str) -> bool:
    return len(scale) <= _SHORT_SCALE and scale.isascii() and scale != "Md"


def _any(names: Iterable[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
