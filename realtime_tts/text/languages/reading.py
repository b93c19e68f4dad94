"""Reads numbers: digits and the signs around them become the words of a language.

`NumberReader.read` takes a closed piece of text, in which every word that could belong to the
number is complete; `NumberReader.extent` finds its end. So the words do not depend on how the text
arrived.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from realtime_tts.text.characters import is_word_character, writes_without_spaces
from realtime_tts.text.languages.amounts import TOO_LONG, Reading, money_sign
from realtime_tts.text.languages.dates import DateWords
from realtime_tts.text.languages.language import Language
from realtime_tts.text.languages.patterns import (
    CLOSERS,
    MINUS,
    SIGNS,
    VULGAR,
    NumberExtents,
)
from realtime_tts.text.languages.rules import first_of

_ALONE = re.compile(
    rf"(?:(?P<one>\d{{1,6}})|(?P<first>[1-9]\d?)(?: \d{{1,2}})+)[{re.escape(CLOSERS)}]*\Z"
)
"""Numbers without anything around them, for which not all rules need to be tried."""


_PHONE_PARTS = re.compile(
    r"(?<!\d)1(?=\d{10}(?!\d))|\d{3}(?=\d{7}(?!\d))|(?<=\d{3})\d{3}(?=\d{4}(?!\d))|\d+"
)
"""The groups of a telephone number, also where nothing separates them."""


_DIGITS = re.compile(r"\d+")
_IDENTIFIER = re.compile(r"[A-Za-z0-9]-\Z")
"""What stands before a number that is a part of a name: CVE-2024-12345, Llama-3.1-8B."""
_BEFORE_AT = re.compile(r"[\w.+-]*@")


class NumberReader(DateWords):
    """Reads the numbers of one language. Get one from `reader_for`: that is slow to make."""

    def __init__(self, language: Language) -> None:
        super().__init__(language)
        self.extent = NumberExtents(language).extent
        self.money_heads = self._patterns.money_heads
        """Words before an amount of money that are its currency: EUR, US."""
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
        self._rules_of_signs = (self._phone, self._fraction, self._range, self._quantity)
        """The rules for what begins with a sign or a parenthesis."""

    def read(self, text: str, previous: str, before: str = "", around: str = "") -> Reading | None:
        """Return the reading of the number that `text` begins with; None if there is no number.

        `previous` is the word before it, `before` the text before it, back to 64 characters;
        `around` is `text`, and the words behind it that the language's own rules look at.
        """
        special = first_of(self.language.rules, around or text, before)
        if special is not None:
            return special
        alone = _ALONE.match(text)
        if alone and self.language.spaced and previous not in self.language.dials:
            number = alone["one"] or alone["first"]
            return Reading(len(number), self._number(number, yearly=True))
        for rule in self._rules if text[0].isdecimal() else self._rules_of_signs:
            reading = rule(text, previous)
            if reading is not None:
                return reading
        return None

    def read_adjective(self, text: str) -> Reading | None:
        """Read a quantity before a noun, where it has no plural: a five dollar fee."""
        match = self._patterns.quantity.match(text)
        if match is None or not self._knows(match):
            return None
        if not (match["currency"] or match["unit"] or match["degrees"]):
            return None
        return Reading(self._length(match), self._amount(match, "", single=True))

    def before_noun(self, text: str, word: str, reading: Reading, following: str) -> Reading:
        """Return the reading, or another one if a noun or name follows: a five dollar fee; at seven
        forty-two Evergreen Terrace.

        `reading` is of `text`; `following` are the two characters behind it, `word` is the word
        before.
        """
        number, lang = text[: reading.length], self.language
        if word in lang.articles and (following[:1] == "." or following[1:].isalpha()):
            adjective = self._range(text, "", single=True) or self.read_adjective(text)
            return adjective if adjective and adjective.length >= reading.length else reading
        named = following[:1] == " " and (following[1:].isupper() or following[1:].isdecimal())
        if lang.pairs and named and len(number) == 3 and number.isdecimal():
            return Reading(reading.length, lang.pairs(number))
        return reading

    def read_money(self, text: str) -> Reading | None:
        """Read an amount that begins with the letters of its currency: US$100, EUR 20."""
        match = self._patterns.quantity.match(text)
        if match is None or not match["currency"]:
            return None
        return self._range(text, "") or self._quantity(text, "")

    def read_glued(self, text: str, before: str = "") -> Reading | None:
        """Read the digits behind letters: in GPT-4 and A380 they are a name, not an amount."""
        lang = self.language
        if before.endswith("v") and (release := first_of(lang.rules, text, before)):
            return release
        version = self._version(text, "") or self._dotted(text)
        if version is not None:
            return version
        run = re.match(r"\d+", text)
        if run is None:
            return None
        digits = run.group()
        if _BEFORE_AT.match(text, run.end()):
            return Reading(len(digits), lang.digits(digits))
        if len(digits) <= 2 and (len(digits) == 1 or digits[0] != "0"):
            return Reading(len(digits), lang.cardinal(int(digits)))
        if lang.pairs and len(digits) in (3, 4) and digits[0] != "0":
            return Reading(len(digits), lang.pairs(digits))
        return Reading(len(digits), lang.digits(digits))

    def _phone(self, text: str, previous: str) -> Reading | None:
        lang = self.language
        match = self._patterns.phone.match(text)
        if match is None and previous in lang.dials:
            match = self._patterns.short_phone.match(text)
        if match is None:
            return None
        say, groups = lang.phone_part or lang.digits, _PHONE_PARTS if lang.phone_part else _DIGITS
        parts = [say(part) for part in groups.findall(match.group())]
        words = (", " if lang.spaced else "，").join(parts)
        return Reading(match.end(), f"{lang.plus} {words}" if text[0] == "+" else words)

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
            return self._fraction_of(text, match.end(), self._signed(match, words))
        if match.group() == "24/7":
            return Reading(4, f"{self._plain('24')} {self._plain('7')}")
        return None

    def _fraction_of(self, text: str, end: int, words: str) -> Reading:
        """Read a fraction with its unit, if it has one: 3/8 tsp, 1/2%."""
        lang = self.language
        behind = self._patterns.behind_fraction.match(text, end)
        if behind is None or not lang.spaced:
            return Reading(end, words)
        if behind["unit"] is None:
            return Reading(behind.end(), f"{words} {lang.percent}")
        name = lang.units[behind["unit"]].one
        half = words == self._fraction_words(1, 2)
        return Reading(behind.end(), words + (f" {name}" if half else lang.of_scale(name)))

    def _range(self, text: str, previous: str, single: bool = False) -> Reading | None:
        if _IDENTIFIER.search(previous):
            return None
        patterns, lang = self._patterns, self.language
        first = patterns.quantity.match(text)
        dash = patterns.dash.match(text, first.end()) if first else None
        if first and dash is None:
            dash = patterns.spaced_dash.match(text, first.end())
        second = patterns.quantity.match(text, dash.end()) if dash else None
        if first is None or dash is None or second is None or second["sign"]:
            return None
        if not (self._knows(first) and self._knows(second)):
            return None
        if single and not _measured(first, second):
            return None
        if dash.group() in ("-", " - ", " – ") and not self._ascends(
            first, second, text[second.end() :]
        ):
            return None
        link = f" {lang.to} " if lang.spaced else lang.to
        shared = money_sign(first) if money_sign(first) and not money_sign(second) else ""
        end, both = self._length(second), first["currency"] and second["currency"]
        if shared and first["currency"] and not second["percent"]:
            # The second number is money, too, and may have a scale of money: £5-10m.
            sign = f"{shared} "
            second = patterns.quantity.match(sign + text[dash.end() :]) or second
            end = dash.end() + self._length(second) - len(sign)
        complete = any(first[name] for name in ("unit", "percent", "scale", "short"))
        cents = first["number"].partition(lang.decimal_mark)[2]
        cents = shared and len(cents) == 2 and not (second["scale"] or second["short"])
        if complete or both or cents:
            before = self._amount(first, "")
        else:
            yearly = not _measured(first, second)
            number = self._measure(first, None) if first["part"] else ""
            before = self._signed(first, number or self._number(first["number"], yearly=yearly))
        return Reading(end, before + link + self._amount(second, shared, single))

    def _ascends(self, first: re.Match[str], second: re.Match[str], rest: str) -> bool:
        """Return whether a hyphen means a range: numbers ascend, and nothing else is attached."""
        if rest[:1] == "-":
            return False
        return _measured(first, second) or self._value(first) < self._value(second)

    def _value(self, match: re.Match[str]) -> float:
        whole, _, decimals = match["number"].partition(self.language.decimal_mark)
        return float(f"{self._digits(whole) or 0}.{decimals or 0}")

    def _quantity(self, text: str, previous: str) -> Reading | None:
        if text[0] in VULGAR:
            return self._fraction_of(text, 1, self._fraction_words(*VULGAR[text[0]]) or "")
        match = self._patterns.quantity.match(text)
        if match is None or not self._knows(match):
            return None
        return Reading(self._length(match), self._amount(match, ""))

    def _length(self, match: re.Match[str]) -> int:
        """Return the length of a number without what it does not say."""
        return self._per(match)[0]


def _measured(first: re.Match[str], second: re.Match[str]) -> bool:
    return any(m[name] for m in (first, second) for name in ("currency", "unit", "percent"))


def begins_number(text: str, at: int, previous: str, ended: bool) -> bool | None:
    """Return whether a number begins with the digit or sign at `at`; None: more is needed."""
    char = text[at]
    if char.isdecimal() or char in VULGAR:
        return True
    if char == "." and previous.isdecimal():  # the number before it did not wait for this
        return None if at + 1 == len(text) and not ended else text[at + 1 : at + 2].isdecimal()
    if is_word_character(previous) or (
        char in MINUS + "+±."
        and previous
        and previous not in " \n\t([{=/\"“'"
        and not writes_without_spaces(previous)
    ):
        return False
    window = text[at + 1 : at + 4]
    if char in SIGNS and window[:1] == " ":
        window = window[1:]
    between = SIGNS if char in MINUS + "+±" else MINUS if char in SIGNS else ""
    signed = window[:1] in between  # -$5, $-5
    if window and (signed or (char in SIGNS and window[0] == ".")):  # $.50
        window = window[1:]
    return (False if ended else None) if not window else window[0].isdecimal()


reader_for = cache(NumberReader)
"""Return the `NumberReader` of a language, which all sessions share."""
