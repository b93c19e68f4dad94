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

from realtime_tts.text.characters import NO_SPACES, is_word_character, writes_without_spaces
from realtime_tts.text.languages.language import Currency, Language, Noun
from realtime_tts.text.languages.patterns import MINUS, SIGNS, VULGAR, Patterns

MAX_WORD = 64
_MAX_WORDS = 6
_TOO_LONG = 15
"""A number of more digits is read digit by digit."""
_WORD = re.compile(rf"[^\s<{NO_SPACES}]{{1,{MAX_WORD}}}")
_CHINESE = re.compile(
    r"[0-9A-Za-z.,:/%°℃$€£¥￥₹²³+\-−–—~½¼¾⅓⅔⅛年月日个位只条张本次天周名件块杯种岁点万亿]{1,48}"
)
_CLOSERS = ".,;:!?)]}\"'’”…"
_ALONE = re.compile(
    rf"(?:(?P<one>\d{{1,6}})|(?P<first>[1-9]\d?)(?: \d{{1,2}})+)[{re.escape(_CLOSERS)}]*\Z"
)
"""Numbers without anything around them: no need to try all rules."""
_SPACES = " \u00a0\u202f"


class Reading(NamedTuple):
    """The first `length` characters are said as `words`."""

    length: int
    words: str


class NumberReader:
    """The numbers of one language. Get it from `reader_for`: it takes milliseconds to make."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._patterns = Patterns(language)
        lang = language
        followers = {*lang.units, *lang.scales, *lang.currencies, *lang.halves, *lang.months}
        followers |= {*lang.clock_words, *(["x", "–", "—"] if lang.spaced else [])}
        self._followers = frozenset(followers)
        self._starts = frozenset(word[:n] for word in followers for n in range(1, len(word) + 1))
        self._going_on = frozenset({*lang.scales, *lang.months, *lang.clock_words, "x", "–", "—"})
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

    # How far a number may reach ---------------------------------------------------------------

    def extent(self, text: str, at: int, ended: bool, stop: Callable[[str], bool]) -> int | None:
        """The end of what may belong to the number at `at`; None if more text is needed for it.

        The answer never changes when text is added. `stop` says of a word that it does not follow.
        """
        if not self.language.spaced:
            run = _CHINESE.match(text, at)
            end = run.end() if run else at + 1
            return end if ended or end < len(text) or end - at >= 48 else None
        end = at
        for count in range(_MAX_WORDS):
            match = _WORD.match(text, end + bool(count))
            if match is None:
                # A space, and then none, or no word at all.
                return end if ended or len(text) > end + bool(count) else None
            word, open_end = match.group(), match.end() == len(text)
            if open_end and not ended and len(word) < MAX_WORD:
                return end if count and not self._may_follow(word) else None
            if count and not (self._follows(word) and not stop(word.rstrip(_CLOSERS))):
                return end
            end = match.end()
            if not self._goes_on(word) or (end < len(text) and text[end] not in _SPACES):
                return end
            if end == len(text):
                return end if ended else None
        return end

    def _may_follow(self, start: str) -> bool:
        bare = start.rstrip(_CLOSERS)
        return start[0].isdigit() or start[0] in "°%(€$£½¼¾⅓⅔⅛" or not bare or (
            start in self._starts or bare in self._starts
        )  # fmt: skip

    def _follows(self, word: str) -> bool:
        return self._may_follow(word) and (
            word[0].isdigit()
            or not word[0].isalpha()
            or word in self._followers
            or word.rstrip(_CLOSERS) in self._followers
        )

    def _goes_on(self, word: str) -> bool:
        """Whether a word behind this one may belong to the same number."""
        if word in self._going_on or word.rstrip(".,") in self.language.months:
            return True
        bare = word.rstrip(",." if self.language.dotted_ordinals else ",")
        if not bare or not any(map(str.isdigit, bare)):
            return False
        return (bare == word or len(bare) <= 4) and (bare[-1].isalnum() or bare[-1] in ")½¼¾⅓⅔⅛%°")

    # Reading ------------------------------------------------------------------------------------

    def read(self, text: str, previous: str) -> Reading | None:
        """The number that `text` begins with. `previous` is the word before it. None: no number."""
        alone = _ALONE.match(text)
        if alone and self.language.spaced and previous not in self.language.dials:
            number = alone["one"] or alone["first"]
            return Reading(len(number), self._number(number, yearly=True))
        for rule in self._rules:
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
        if not lang.spaced and (match := patterns.chinese_year.match(text)):
            return Reading(4, lang.year(int(match.group())))
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
        dash = patterns.dash.match(text, match.end())
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
        if len(digits) > _TOO_LONG:
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

    def _fraction_words(self, above: int, below: int) -> str | None:
        if not self.language.spaced and 0 < above < below < 100:
            return f"{self.language.cardinal(below)}分之{self.language.cardinal(above)}"
        return self.language.fractions.get((above, below))

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
        if dash.group() == "-" and not self._ascends(first, second, text[second.end() :]):
            return None
        link = f" {lang.to} " if lang.spaced else lang.to
        shared = _sign(first) if _sign(first) and not _sign(second) else ""
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
        if not lang.spaced and self._patterns.counted_two.match(text):
            return Reading(1, lang.count(2, ""))
        if text[0] in VULGAR:
            return Reading(1, self._fraction_words(*VULGAR[text[0]]) or "")
        match = self._patterns.quantity.match(text)
        return Reading(self._length(match), self._amount(match, "")) if match else None

    def _length(self, match: re.Match[str]) -> int:
        """Without the short scale that only money has."""
        return match.start("short") if match["short"] and not _sign(match) else match.end()

    # Amounts --------------------------------------------------------------------------------------

    def _amount(self, match: re.Match[str], shared: str) -> str:
        """`shared`: the currency that stands before the first number of a range."""
        lang, sign = self.language, match["sign"]
        currency = lang.currencies.get(_sign(match) or shared)
        if currency is None and (match["currency"] or shared):
            currency = lang.currencies.get({"￥": "¥"}.get(match["currency"], "$"))
        scale = lang.scales.get(match["scale"] or (match["short"] if currency else "") or "")
        if currency is not None:
            words = self._money(match["number"], scale, currency)
        elif match["percent"]:
            number = self._number(match["number"])
            words = lang.percent + number if lang.percent_before else f"{number} {lang.percent}"
        else:
            words = self._measure(match, scale)
        before = {"+": lang.plus, "±": f"{lang.plus} {lang.minus}"}.get(sign, lang.minus)
        return f"{before}{' ' if lang.spaced else ''}{words}" if sign else words

    def _measure(self, match: re.Match[str], scale: Noun | None) -> str:
        lang, number = self.language, match["number"]
        unit = lang.units.get(match["unit"] or "") or (lang.degrees if match["degrees"] else None)
        if match["part"]:
            return self._mixed(number, match["part"].strip(), unit)
        if scale is not None:
            words = self._counted(number, scale)
            return words + lang.of_scale(unit.many) if unit else words
        if unit is not None:
            return self._counted(number, unit)
        return self._number(number, yearly=not match["sign"])

    def _mixed(self, number: str, part: str, unit: Noun | None) -> str:
        above, below = VULGAR.get(part) or tuple(map(int, part.split("/")))
        words = self._fraction_words(above, below) or f"{self._plain(str(above))}"
        if self.language.name == "english" and above == 1:
            words = "a " + words.removeprefix("one ")
        words = self._number(number) + self.language.mixed + words
        return f"{words} {unit.many}" if unit else words

    def _money(self, number: str, scale: Noun | None, currency: Currency) -> str:
        lang = self.language
        if scale is not None:
            return self._counted(number, scale) + lang.of_scale(currency.major.many)
        if not lang.money and lang.decimal_mark in number:
            number = number.rstrip("0").rstrip(lang.decimal_mark)
        whole, _, cents = number.partition(lang.decimal_mark)
        if len(cents) != 2 or currency.minor is None or not lang.money:
            return self._counted(number, currency.major)
        if int(cents) == 0:
            return self._counted(whole, currency.major)
        coins = self._counted(cents.lstrip("0"), currency.minor)
        if not whole or int(self._digits(whole)) == 0:
            return coins
        minor, _, name = coins.rpartition(" ")
        return lang.money.format(
            major=self._counted(whole, currency.major),
            minor=minor if "{coins}" in lang.money else lang.cardinal(int(cents)),
            coins=name,
        )

    def _counted(self, number: str, noun: Noun) -> str:
        lang = self.language
        space = " " if lang.spaced else ""
        if lang.decimal_mark in number:
            value = float(self._digits(number.partition(lang.decimal_mark)[0]) or 0)
            name = noun.one if value + 1 <= lang.singular_below else noun.many
            return f"{self._number(number)}{space}{name}"
        digits = self._digits(number)
        if len(digits) > _TOO_LONG:
            return f"{lang.digits(digits)}{space}{noun.many}"
        one = int(digits) == 1 or (int(digits) == 0 and lang.singular_below > 1)
        return f"{lang.count(int(digits), noun.gender)}{space}{noun.one if one else noun.many}"

    def _number(self, number: str, yearly: bool = False) -> str:
        """A number with or without decimals, as it stands alone."""
        lang = self.language
        whole, mark, decimals = number.partition(lang.decimal_mark)
        if not mark:
            if yearly and lang.spaced and len(number) == 4 and number.isdigit():
                if 1100 <= int(number) < 2100:
                    return lang.year(int(number))
            return self._plain(self._digits(whole))
        if lang.whole_decimals and len(decimals) <= 3 and decimals[0] != "0":
            behind = lang.cardinal(int(decimals))
        else:
            behind = lang.digits(decimals)
        space = " " if lang.spaced else ""
        before = self._plain(self._digits(whole)) + space if whole else ""
        return f"{before}{lang.point}{space}{behind}"

    def _plain(self, digits: str) -> str:
        if len(digits) > _TOO_LONG or (len(digits) > 1 and digits[0] == "0"):
            return self.language.digits(digits)
        return self.language.cardinal(int(digits))

    @staticmethod
    def _digits(number: str) -> str:
        return "".join(filter(str.isdecimal, number))


def _sign(match: re.Match[str]) -> str:
    """The currency of a quantity, before or behind the number; "" for none."""
    unit = match["unit"] or ""
    is_money = unit in SIGNS or (len(unit) == 3 and unit.isupper() and unit not in ("GHz", "MHz"))
    return match["currency"] or (unit if unit and (is_money or unit == "¢") else "")


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


@cache
def reader_for(language: Language) -> NumberReader:
    """One for all sessions."""
    return NumberReader(language)
