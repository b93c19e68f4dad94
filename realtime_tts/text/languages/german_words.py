"""The words for German numbers, times and dates."""

from __future__ import annotations

from realtime_tts.text.languages import tables
from realtime_tts.text.languages.language import YEARS

_SMALL = (
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn"
    " sechzehn siebzehn achtzehn neunzehn"
).split()
_TENS = "  zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split(" ")
_POWERS = (
    (10**12, "eine Billion", "Billionen"),
    (10**9, "eine Milliarde", "Milliarden"),
    (10**6, "eine Million", "Millionen"),
)
MONTHS = (
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
).split()
_NOMINATIVE = frozenset({"der", "Der", "das", "Das", "die", "Die"})
_OTHER_CASES = frozenset(
    "am Am vom Vom zum Zum beim im Im dem den des Den Dem Des bis Bis ab Ab seit Seit".split()
)


def cardinal(n: int) -> str:
    return _millions(n, "eins")


def count(n: int, gender: str) -> str:
    return _millions(n, "eine" if gender == "f" else "ein")


def _millions(n: int, one: str) -> str:
    return tables.by_powers(
        n, _POWERS, lambda many: _thousands(many, "eins"), lambda rest: _thousands(rest, one)
    )


def _thousands(n: int, one: str) -> str:
    thousands, rest = divmod(n, 1000)
    if not thousands:
        return _hundreds(rest, one)
    head = f"{_hundreds(thousands, 'ein')}tausend"
    return head + (_hundreds(rest, one) if rest else "")


def _hundreds(n: int, one: str) -> str:
    hundreds, rest = divmod(n, 100)
    head = f"{'ein' if hundreds == 1 else _SMALL[hundreds]}hundert" if hundreds else ""
    if rest == 0 and head:
        return head
    if rest == 1:
        return head + one
    if rest < 20:
        return head + _SMALL[rest]
    tens, ones = divmod(rest, 10)
    link = f"{'ein' if ones == 1 else _SMALL[ones]}und" if ones else ""
    return f"{head}{link}{_TENS[tens]}"


def stem(n: int) -> str:
    last = n % 100
    if last in (1, 3, 7, 8):
        words = cardinal(n)
        for whole, short in (("eins", "erst"), ("drei", "dritt"), ("sieben", "siebt")):
            words = words.removesuffix(whole) + short if words.endswith(whole) else words
        return words
    return cardinal(n) + ("t" if 0 < last < 20 else "st")


def ordinal(n: int, previous: str = "") -> str:
    if previous in _NOMINATIVE:
        return stem(n) + "e"
    return stem(n) + ("en" if previous in _OTHER_CASES else "er")


def year(n: int) -> str:
    century, rest = divmod(n, 100)
    if not 11 <= century <= 19:
        return cardinal(n)
    return f"{_SMALL[century]}hundert" + (cardinal(rest) if rest else "")


def time(hour: int, minute: int, second: int | None, half: str) -> str:
    words = f"{count(hour, 'n')} Uhr" + (f" {cardinal(minute)}" if minute or second else "")
    return words if not second else f"{words} und {cardinal(second)} Sekunden"


def date(day: int, month: int, in_year: int | None, previous: str) -> str:
    words = f"{ordinal(day, previous)} {MONTHS[month - 1]}"
    if in_year is None:
        return words
    return f"{words} {year(in_year) if in_year in YEARS else cardinal(in_year)}"
