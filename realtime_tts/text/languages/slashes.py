"""The words for slashes outside numbers: and/or, v = d/t, 3 times/day, $15 / month."""

from __future__ import annotations

import re

from realtime_tts.text.languages.amounts import NOTHING, Reading
from realtime_tts.text.languages.language import Language
from realtime_tts.text.languages.patterns import SIGNS

_PATH = re.compile(r"/[\w.-]+\Z")
_VARIABLE = re.compile(r"(?<![\w.'’/])(?:[a-z]|(?<==)[A-Z]|(?<== )[A-Z])\Z")
"""A letter before a slash that divides it: v = d/t, and I = U/R but not A/C."""
_WORD = re.compile(r"\w+")
_SCALED = re.compile(r"\d[kKMB]\Z")
_PRICE = re.compile(rf"(?:[{SIGNS}] ?\d[\d.,]*(?:[kKMB]|bn)?|\d ?[{SIGNS}]) \Z")
_PRICED = re.compile(
    rf"/ (?:1(?P<scale>[kKM])|1[.,]?000|(?P<unit>[^\W\d_]+))(?!\w)|(?P<other>/) [{SIGNS}]"
)
_OPEN_PRICED = re.compile(r"/(?: (?:1[.,]?0{0,3}|1[kKM]|[^\W\d_]{0,12})?)?\Z")


def parting(lang: Language, text: str, at: int, before: str) -> Reading:
    """Read a slash between words: 3 times/day, v = d/t, and/or."""
    behind = _WORD.match(text, at + 1)
    unit = lang.divisors.get(behind.group()) if behind else None
    letter = _VARIABLE.search(before)
    measured = letter is None or letter.group() in (*lang.units, *lang.clock_words)
    counted = before[-1:].islower() or _SCALED.search(before)  # times/day, 50K/yr
    if unit and behind and measured and counted and not _PATH.search(before):
        return Reading(behind.end() - at, f"{lang.per} {unit}")
    divided = lang.operators.get("/")
    divisor = behind.group() if behind and text[at + 2 : at + 3] != "/" else ""
    single = len(divisor) == 1 and divisor.isalpha()
    number = divisor.isdecimal() and letter and letter.group() != "w"  # w/2 eggs
    if divided and letter and (single or number) and divisor != letter.group():
        return Reading(1, f" {divided} ")
    return Reading(1, " ") if before[-1:].isalpha() else NOTHING


def pricing(lang: Language, text: str, at: int, before: str, ended: bool) -> Reading | None:
    """Read a slash between spaces that says what a price is for: $15 / 1M tokens, $20 / mo.

    Length 0: it is no such slash; None: more text is needed.
    """
    if not _PRICE.search(before):
        return NOTHING
    if not ended and _OPEN_PRICED.match(text, at):
        return None
    match = _PRICED.match(text, at)
    if match is None:
        return NOTHING
    if match["other"]:
        return Reading(1, "/")  # $25 / $50 is no division
    if match["unit"]:
        unit = lang.divisors.get(match["unit"])
        return Reading(match.end() - at, f"{lang.per} {unit}") if unit else NOTHING
    scale = lang.scales.get(match["scale"] or "")
    if scale is None:
        return Reading(1, lang.per)
    return Reading(match.end() - at, f"{lang.per} {lang.count(1, scale.gender)} {scale.one}")
