"""Rules for German dates of numbers: am 3.5., 24.12.2026–2.1.2027, 5. Jan."""

from __future__ import annotations

import re
from collections.abc import Callable

from realtime_tts.text.languages import german_cues as cues
from realtime_tts.text.languages.german_words import MONTHS, cardinal, stem, year
from realtime_tts.text.languages.language import YEARS
from realtime_tts.text.languages.rules import dated, rule


def number_or_year(number: int) -> str:
    return year(number) if number in YEARS else cardinal(number)


def _dated(ending: str, behind: str = "") -> Callable[[re.Match[str]], str | None]:
    def said(day: int, month: int, of: int | None, _: str) -> str:
        words = f"{stem(day)}{ending} {MONTHS[month - 1]}"
        return (words if of is None else f"{words} {number_or_year(of)}") + behind

    return dated(said)


DAYS = {"Mo": "Montag", "Di": "Dienstag", "Mi": "Mittwoch", "Do": "Donnerstag", "Fr": "Freitag"}
DAYS |= {"Sa": "Samstag", "So": "Sonntag"}
"""The short names of days, which are read in ranges: So and Do are words, too."""
_DAYS = rf"(?:{'|'.join(DAYS.values())}|Sonnabend)|(?:{'|'.join(DAYS)})\.?"
SHORT = {name[:3]: number for number, name in enumerate(MONTHS, 1)} | {"Sept": 9}
_DATE = (
    r"(?P<day>\d{1,2})\. ?(?P<month>\d{1,2})"
    r"(?:\. ?(?P<year>\d\d(?:\d\d)?)(?!\d)|\.(?= \S|[,;)])|(?=\.))(?!\d)"
)
_FROM = r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})? ?[–-] ?(?=\d{1,2}\.\d{1,2}\.)"
_UNTIL = r"\d{1,2}\.\d{1,2}\.(?:\d{4})? ?[–-] ?"
_SHORT_DATE = rf"(?P<n>\d{{1,2}})\. (?P<month>{'|'.join(SHORT)})\.(?= [a-zäöü0-9]|,)"
DATES = (
    rule(_FROM, _dated("en", " bis "), cues.SINCE),
    rule(_FROM, _dated("er", " bis ")),
    rule(_DATE, _dated("en"), rf"{cues.SINCE}{_UNTIL}"),
    rule(_DATE, _dated("er"), _UNTIL),
    rule(_DATE, _dated("en"), cues.SINCE),
    rule(
        _DATE,
        _dated("en"),
        r"\b(?i:am|vom|zum|dem|ab|bis) \d{1,2}\.\d{1,2}\.(?:\d{4})? (?:und|oder)\s",
    ),
    rule(_DATE, _dated("er"), rf"\b(?:{_DAYS}),?\s"),
    rule(
        _SHORT_DATE,
        lambda m: f"{stem(int(m['n']))}en {MONTHS[SHORT[m['month']] - 1]}",
        cues.OBLIQUE,
    ),
    rule(_DATE, _dated("e"), r"\b[Dd]er\s"),
    rule(
        r"(?P<day>\d\d)\.(?P<month>0[1-9]|1[0-2])\.(?P<year>(?!))?(?!\d)",
        _dated("er"),
        unless=cues.LABELS,
    ),
)
