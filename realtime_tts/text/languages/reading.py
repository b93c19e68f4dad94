"""Reads numbers: digits and the signs around them become the words of a language.

`NumberReader.read` is given a closed piece of text, in which every word that could belong to the
number is complete; where it ends, `NumberReader.extent` knows. So what is said does not depend on
how the text came in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from realtime_tts.text.characters import is_word_character, writes_without_spaces
from realtime_tts.text.languages.amounts import TOO_LONG, AmountWords, money_sign
from realtime_tts.text.languages.language import Language
from realtime_tts.text.languages.patterns import (
    CLOSERS,
    MINUS,
    SIGNS,
    VULGAR,
    NumberExtents,
    Patterns,
)

_ALONE = re.compile(
    rf"(?:(?P<one>\d{{1,6}})|(?P<first>[1-9]\d?)(?: \d{{1,2}})+)[{re.escape(CLOSERS)}]*\Z"
)
"""Numbers without anything around them: no need to try all rules."""


class Reading(NamedTuple):
    """The first `length` characters are said as `words`."""

    length: int
    words: str


class NumberReader(AmountWords):
    """The numbers of one language. Get it from `reader_for`: it takes milliseconds to make."""

    def __init__(self, language: Language) -> None:
        super().__init__(language)
        self._patterns = Patterns(language)
        self.extent = NumberExtents(language).extent
        self._rules: tuple[Callable[[str, str], Reading | None], ...] = (
            self._phone,
            self._date,
            self._time,
            self._version,
            self._decade,
            self._ordinal,
            self._fraction,
            self._range,
            self._quantity,
        )
        self._rules_of_signs = (self._phone, self._range, self._quantity)
        """The rules for what begins with a sign or a parenthesis."""

    def read(self, text: str, previous: str) -> Reading | None:
        """The number that `text` begins with. `previous` is the word before it. None: no number."""
        alone = _ALONE.match(text)
        if alone and self.language.spaced and previous not in self.language.dials:
            number = alone["one"] or alone["first"]
            return Reading(len(number), self._number(number, yearly=True))
        for rule in self._rules if text[0].isdecimal() else self._rules_of_signs:
            reading = rule(text, previous)
            if reading is not None:
                return reading
        return None

    def read_glued(self, text: str) -> Reading | None:
        """The digits behind letters: in GPT-4 and A380 they are a name, not an amount."""
        version = self._version(text, "") or self._dotted(text)
        if version is not None:
            return version
        run = re.match(r"\d+", text)
        if run is None:
            return None
        digits, lang = run.group(), self.language
        if len(digits) <= 2 and (len(digits) == 1 or digits[0] != "0"):
            return Reading(len(digits), lang.cardinal(int(digits)))
        if lang.pairs and len(digits) in (3, 4) and digits[0] != "0" and digits[-2] != "0":
            words = f"{lang.cardinal(int(digits[:-2]))} {lang.cardinal(int(digits[-2:]))}"
            return Reading(len(digits), words)
        return Reading(len(digits), lang.digits(digits))

    def read_month(self, text: str, previous: str) -> Reading | None:
        """A date that begins with a month."""
        match = self._patterns.month_day.match(text)
        return self._dated(match, previous) if match else None

    def _phone(self, text: str, previous: str) -> Reading | None:
        lang = self.language
        match = self._patterns.phone.match(text)
        if match is None and previous in lang.dials:
            match = self._patterns.short_phone.match(text)
        if match is None:
            return None
        parts = [lang.digits(part) for part in re.findall(r"\d+", match.group())]
        words = (", " if lang.spaced else "，").join(parts)
        return Reading(match.end(), f"{lang.plus} {words}" if text[0] == "+" else words)

    def _date(self, text: str, previous: str) -> Reading | None:
        patterns, lang = self._patterns, self.language
        match = patterns.day_month.match(text)
        if match:
            return self._dated(match, previous)
        match = patterns.iso_date.match(text)
        if match:
            return self._say_date(match, int(match["day"]), int(match["month"]), previous)
        match = patterns.date.match(text)
        if match is None:
            return None
        one, two = int(match["one"]), int(match["two"])
        day, month = (one, two) if lang.day_first or one > 12 else (two, one)
        if month > 12 and lang.day_first:
            day, month = month, day
        return self._say_date(match, day, month, previous)

    def _dated(self, match: re.Match[str], previous: str) -> Reading | None:
        return self._say_date(
            match, int(match["day"]), self.language.months[match["month"]], previous
        )

    def _say_date(
        self, match: re.Match[str], day: int, month: int, previous: str
    ) -> Reading | None:
        if not (1 <= day <= 31 and 1 <= month <= 12):
            return None
        year = int(match["year"]) if match["year"] else None
        return Reading(match.end(), self.language.date(day, month, year, previous))

    def _time(self, text: str, previous: str) -> Reading | None:
        patterns, lang = self._patterns, self.language
        match = patterns.time.match(text)
        second, half = (match["second"], match["half"]) if match else (None, None)
        if match is None and (match := patterns.hour.match(text)):
            half = match["half"]
        match = match or patterns.glued.match(text)
        if match is None or int(match["hour"]) > 24:
            return None
        minute = match.groupdict().get("minute")
        words = lang.time(
            int(match["hour"]),
            int(minute or 0),
            None if second is None else int(second),
            lang.halves[half] if half else "",
        )
        dash = patterns.time_dash.match(text, match.end())
        until = self._time(text[dash.end() :], "") if dash else None
        if dash is None or until is None:
            return Reading(match.end(), words)
        link = f" {lang.to} " if lang.spaced else lang.to
        return Reading(dash.end() + until.length, words + link + until.words)

    def _version(self, text: str, previous: str) -> Reading | None:
        patterns, lang = self._patterns, self.language
        match = patterns.version.match(text)
        if match is None and lang.decimal_mark != ".":
            match = patterns.dotted.match(text)
        if match is None:
            return None
        grouped = patterns.number.match(text)
        if grouped and grouped.end() >= match.end() and "." in lang.group_marks:
            return None  # 1.000.000
        dot = f" {lang.dot} " if lang.spaced else lang.dot
        return Reading(match.end(), dot.join(self._plain(p) for p in match.group().split(".")))

    def _dotted(self, text: str) -> Reading | None:
        match = self._patterns.dotted.match(text)
        return Reading(match.end(), self._number(match.group())) if match else None

    def _decade(self, text: str, previous: str) -> Reading | None:
        say = self.language.decade
        match = self._patterns.decade.match(text) if say else None
        return Reading(match.end(), say(int(match["year"]))) if match and say else None

    def _ordinal(self, text: str, previous: str) -> Reading | None:
        match = self._patterns.ordinal.match(text)
        if match is None:
            return None
        digits = self._digits(match["number"])
        if len(digits) > TOO_LONG:
            return None
        return Reading(match.end(), self.language.ordinal(int(digits), match["mark"]))

    def _fraction(self, text: str, previous: str) -> Reading | None:
        match = self._patterns.fraction.match(text)
        if match is None:
            return None
        words = self._fraction_words(int(match["above"]), int(match["below"]))
        if words is not None:
            return Reading(match.end(), words)
        if match.group() == "24/7":
            return Reading(4, f"{self._plain('24')} {self._plain('7')}")
        return None

    def _range(self, text: str, previous: str) -> Reading | None:
        patterns, lang = self._patterns, self.language
        by = patterns.by.match(text)
        if by and lang.name == "english":
            words = f"{self._plain(by['one'])} by {self._plain(by['two'])}"
            return Reading(by.end(), words)
        first = patterns.quantity.match(text)
        dash = patterns.dash.match(text, first.end()) if first else None
        second = patterns.quantity.match(text, dash.end()) if dash else None
        if first is None or dash is None or second is None or second["sign"]:
            return None
        if not (self._knows(first) and self._knows(second)):
            return None
        if dash.group() == "-" and not self._ascends(first, second, text[second.end() :]):
            return None
        link = f" {lang.to} " if lang.spaced else lang.to
        shared = money_sign(first) if money_sign(first) and not money_sign(second) else ""
        if first["unit"] or first["percent"] or (first["currency"] and second["currency"]):
            before = self._amount(first, "")
        else:
            before = self._number(first["number"], yearly=not _measured(first, second))
        return Reading(second.end(), before + link + self._amount(second, shared))

    def _ascends(self, first: re.Match[str], second: re.Match[str], rest: str) -> bool:
        """A hyphen between two numbers is a range if they ascend and nothing else is attached."""
        if rest[:1] == "-" or not first["number"].isdigit() or not second["number"].isdigit():
            return _measured(first, second) and rest[:1] != "-"
        return int(first["number"]) < int(second["number"])

    def _quantity(self, text: str, previous: str) -> Reading | None:
        lang = self.language
        if text[0] in VULGAR:
            return Reading(1, self._fraction_words(*VULGAR[text[0]]) or "")
        match = self._patterns.quantity.match(text)
        if match is None or not self._knows(match):
            return None
        return Reading(self._length(match), self._amount(match, ""))

    def _length(self, match: re.Match[str]) -> int:
        """The length of a number without the short scale (`k`, `bn`) that only money has."""
        return match.start("short") if match["short"] and not money_sign(match) else match.end()


def _measured(first: re.Match[str], second: re.Match[str]) -> bool:
    return any(m[name] for m in (first, second) for name in ("currency", "unit", "percent"))


def begins_number(text: str, at: int, previous: str, ended: bool) -> bool | None:
    """Whether a number begins with the digit or sign at `at`; None if more text is needed."""
    char = text[at]
    if char.isdecimal() or char in VULGAR:
        return True
    if char == "." and previous.isdecimal():  # the number before it did not wait for this
        return None if at + 1 == len(text) and not ended else text[at + 1 : at + 2].isdecimal()
    if is_word_character(previous) or (
        char in MINUS + "+±."
        and previous
        and previous not in " \n\t(\"“'"
        and not writes_without_spaces(previous)
    ):
        return False
    window = text[at + 1 : at + 3]
    if char in MINUS + "+±" and window[:1] in SIGNS and window:
        window = window[1:]
    return (False if ended else None) if not window else window[0].isdecimal()


reader_for = cache(NumberReader)
"""Gives the reader of a language; all sessions share it."""
