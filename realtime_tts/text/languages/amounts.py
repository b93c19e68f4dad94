"""The words for amounts: plain numbers, money, measures and fractions."""

from __future__ import annotations

import re
from typing import NamedTuple

from realtime_tts.text.languages.language import YEARS, Currency, Language, Noun
from realtime_tts.text.languages.patterns import SIGNS, VULGAR


class Reading(NamedTuple):
    """How a text begins: its first `length` characters are said as `words`. 0: as written."""

    length: int
    words: str


NOTHING = Reading(0, "")
"""A text that is spoken as it is written."""
TOO_LONG = 15
"""The most digits of a number that is read as one; longer ones are read digit by digit."""


class AmountWords:
    """Puts what `Patterns.quantity` matched into words. Numbers are strings as written."""

    def __init__(self, language: Language) -> None:
        self.language = language

    def _amount(self, match: re.Match[str], shared: str, single: bool = False) -> str:
        """Read a quantity.

        `shared`: the currency that stands before the first number of a range. `single`: the
        quantity is an adjective, which has no plural: a five dollar fee.
        """
        lang = self.language
        behind = (match["behind"] or "") if self._belongs(match) else ""
        currency = self._currency(behind) or self._currency(money_sign(match) or shared)
        scale = lang.scales.get(match["scale"] or (match["short"] if currency else "") or "")
        if currency is not None:
            words = self._money(match["number"], scale, currency, single)
        elif match["percent"]:
            number = match["number"] + (match["part"] or "")
            number = self._measure(match, None) if match["part"] else self._number(number)
            words = lang.percent + number if lang.percent_before else f"{number} {lang.percent}"
        else:
            words = self._measure(match, scale, single)
        if behind in lang.behind_money:
            words += f" {lang.behind_money[behind]}"
        return self._signed(match, words + self._per(match)[1])

    def _signed(self, match: re.Match[str], words: str) -> str:
        """Return the words for a quantity without its sign, behind the word for its sign."""
        lang, groups = self.language, match.groupdict()
        sign = groups["sign"] or groups.get("inner") or ""
        before = {"+": lang.plus, "±": lang.plus_or_minus or f"{lang.plus} {lang.minus}"}
        word = before.get(sign, lang.minus)
        return f"{word}{' ' if lang.spaced else ''}{words}" if sign else words

    def _belongs(self, match: re.Match[str]) -> bool:
        """Return whether the currency behind an amount agrees with its sign: $5 CAD, not £5 USD."""
        sign, code = self._currency(match["currency"] or ""), self._currency(match["behind"] or "")
        if sign is None or code is None or sign is code:
            return True
        return match["currency"] == "$" and code.major.one.endswith((" dollar", " peso"))

    def _per(self, match: re.Match[str]) -> tuple[int, str]:
        """Return where the quantity ends, and the words behind slashes: /s, /user/month."""
        lang, end, words = self.language, match.start("per"), ""
        if match["short"] and not money_sign(match):  # k and bn are scales of money only
            return match.start("short"), ""
        if not self._belongs(match):
            return match.start("behind") - 1, ""
        if not match["per"] or not lang.per:
            return (end if match["per"] else match.end()), ""
        for part in match["per"].split("/")[1:]:
            unit = lang.divisors.get(part) or (lang.units[part].one if part in lang.units else "")
            if part[0].isdecimal():
                unit = self._many(part)
            longer = 2 if match["currency"] else 3 if match["unit"] else len(part)
            if not unit and part.islower() and len(part) > longer:
                unit = part
            if not unit:
                return end, words
            space = " " if lang.spaced else ""
            words += f"{space}{lang.per}{space}{unit}"
            end += len(part) + 1
        return end, words

    def _many(self, part: str) -> str:
        """Read what a price is for: 12,5 €/100 g, $3/1M tokens."""
        name = part.lstrip("0123456789,")
        number, name = part.removesuffix(name), name.strip()
        noun = self.language.scales.get(name) or self.language.units.get(name)
        return self._counted(number, noun) if noun else self._number(number)

    def _currency(self, sign: str) -> Currency | None:
        return self.language.currencies.get("¥" if sign == "￥" else sign)

    def _knows(self, match: re.Match[str]) -> bool:
        """Return whether the quantity's currency, if it has one, has a name in the language."""
        return not match["currency"] or self._currency(match["currency"]) is not None

    def _measure(self, match: re.Match[str], scale: Noun | None, single: bool = False) -> str:
        lang, number = self.language, match["number"]
        unit = lang.units.get(match["unit"] or "") or (lang.degrees if match["degrees"] else None)
        if match["part"]:
            return self._mixed(number, match["part"].strip().lstrip("-"), unit)
        if scale is not None:
            words = self._counted(number, scale)
            return words + lang.of_scale(unit.one if single else unit.many) if unit else words
        if unit is not None:
            return self._counted(number, unit, single)
        return self._number(number, yearly=not match["sign"])

    def _mixed(self, number: str, part: str, unit: Noun | None) -> str:
        above, below = VULGAR.get(part) or tuple(map(int, part.split("/")))
        words = self._fraction_words(above, below) or f"{self._plain(str(above))}"
        if self.language.name == "english" and above == 1:
            words = "a " + words.removeprefix("one ")
        words = self._number(number) + self.language.mixed + words
        return f"{words} {unit.many}" if unit else words

    def _money(
        self, number: str, scale: Noun | None, currency: Currency, single: bool = False
    ) -> str:
        lang = self.language
        if scale is not None:
            name = currency.major.one if single else currency.major.many
            return self._counted(number, scale) + lang.of_scale(name)
        if not lang.money and lang.decimal_mark in number:
            number = number.rstrip("0").rstrip(lang.decimal_mark) or "0"
        whole, _, cents = number.partition(lang.decimal_mark)
        if len(cents) != 2 or currency.minor is None or not lang.money:
            return self._counted(number, currency.major, single)
        if int(cents) == 0:
            return self._counted(whole or "0", currency.major, single)
        coins = self._counted(cents.lstrip("0"), currency.minor, single)
        if not whole or int(self._digits(whole)) == 0:
            return coins
        minor, _, name = coins.rpartition(" ")
        return lang.money.format(
            major=self._counted(whole, currency.major, single),
            minor=minor if "{coins}" in lang.money else lang.cardinal(int(cents)),
            coins=name,
        )

    def _counted(self, number: str, noun: Noun, single: bool = False) -> str:
        lang = self.language
        noun = Noun(noun.one, noun.one, noun.gender) if single else noun
        space = " " if lang.spaced else ""
        if lang.decimal_mark in number:
            value = float(self._digits(number.partition(lang.decimal_mark)[0]) or 0)
            name = noun.one if value + 1 <= lang.singular_below else noun.many
            return f"{self._number(number)}{space}{name}"
        digits = self._digits(number)
        if len(digits) > TOO_LONG:
            return f"{lang.digits(digits)}{space}{noun.many}"
        value = int(digits)
        one = value == 1 or (value == 0 and lang.singular_below > 1)
        name = noun.one if one else noun.many
        behind = lang.of_scale(name) if value and value % 10**6 == 0 else space + name
        return lang.count(value, noun.gender) + behind

    def _number(self, number: str, yearly: bool = False) -> str:
        """Return the words for a number, with or without decimals, that stands alone."""
        lang = self.language
        whole, mark, decimals = number.partition(lang.decimal_mark)
        if not mark:
            if yearly and lang.spaced and len(number) == 4 and number.isdigit():
                if int(number) in YEARS:
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
        if len(digits) > TOO_LONG or (len(digits) > 1 and digits[0] == "0"):
            return self.language.digits(digits)
        return self.language.cardinal(int(digits))

    @staticmethod
    def _digits(number: str) -> str:
        return "".join(filter(str.isdecimal, number))

    def _fraction_words(self, above: int, below: int) -> str | None:
        if not self.language.spaced and 0 < above < below < 100:
            return f"{self.language.cardinal(below)}分之{self.language.cardinal(above)}"
        return self.language.fractions.get((above, below))


def money_sign(match: re.Match[str]) -> str:
    """Return the currency of a quantity, before or behind the number; "" for none."""
    unit = match["unit"] or ""
    is_money = (
        unit in SIGNS
        or unit[-1:] == "$"
        or (len(unit) == 3 and unit.isupper() and unit not in ("GHz", "MHz"))
    )
    return match["currency"] or (unit if unit and (is_money or unit == "¢") else "")
