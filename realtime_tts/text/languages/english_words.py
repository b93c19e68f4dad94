"""English numbers in words."""

from __future__ import annotations

import re
from collections.abc import Callable

from realtime_tts.text.languages import tables
from realtime_tts.text.languages.language import YEARS

Words = Callable[[re.Match[str]], str | None]

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "  twenty thirty forty fifty sixty seventy eighty ninety".split(" ")
_POWERS = (
    (10**12, "one trillion", "trillion"),
    (10**9, "one billion", "billion"),
    (10**6, "one million", "million"),
    (1000, "one thousand", "thousand"),
    (100, "one hundred", "hundred"),
)
_ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth"}
_ORDINALS |= {"eight": "eighth", "nine": "ninth", "twelve": "twelfth"}
_MONTHS = (
    "January February March April May June July August September October November December"
).split()
SHORT_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
MONTHS = tables.numbered(_MONTHS) | tables.numbered(SHORT_MONTHS) | {"Sept": 9}
STATES = tables.entries(
    "AL Alabama|AK Alaska|AZ Arizona|AR Arkansas|CA California|CO Colorado|CT Connecticut"
    "|DE Delaware|FL Florida|GA Georgia|HI Hawaii|ID Idaho|IL Illinois|IN Indiana|IA Iowa"
    "|KS Kansas|KY Kentucky|LA Louisiana|ME Maine|MD Maryland|MA Massachusetts|MI Michigan"
    "|MN Minnesota|MS Mississippi|MO Missouri|MT Montana|NE Nebraska|NV Nevada|NH New Hampshire"
    "|NJ New Jersey|NM New Mexico|NY New York|NC North Carolina|ND North Dakota|OH Ohio"
    "|OK Oklahoma|OR Oregon|PA Pennsylvania|RI Rhode Island|SC South Carolina|SD South Dakota"
    "|TN Tennessee|TX Texas|UT Utah|VT Vermont|VA Virginia|WA Washington|WV West Virginia"
    "|WI Wisconsin|WY Wyoming|DC D.C."
)


def cardinal(n: int) -> str:
    if n < 20:
        return _SMALL[n]
    if n < 100:
        tens, rest = divmod(n, 10)
        return _TENS[tens] + (f"-{_SMALL[rest]}" if rest else "")
    return tables.by_powers(n, _POWERS, cardinal, cardinal)


def ordinal(n: int, mark: str = "") -> str:
    words = cardinal(n)
    cut = max(words.rfind(" "), words.rfind("-")) + 1
    return words[:cut] + ordinal_word(words[cut:])


def ordinal_word(word: str) -> str:
    """Return the ordinal of a cardinal number that is one word."""
    if word in _ORDINALS:
        return _ORDINALS[word]
    return word[:-1] + "ieth" if word.endswith("y") else word + "th"


def year(n: int) -> str:
    century, rest = divmod(n, 100)
    if n % 1000 < 10:
        return cardinal(n)
    if rest == 0:
        return f"{cardinal(century)} hundred"
    return f"{cardinal(century)} {'oh ' if rest < 10 else ''}{cardinal(rest)}"


def decade(n: int) -> str:
    """Return the decade that begins with the year `n`, or with the last two digits of one."""
    words = year(n) if n >= 100 else cardinal(n)
    if words.endswith("x"):
        return words + "es"
    return words[:-1] + "ies" if words.endswith("y") else words + "s"


def time(hour: int, minute: int, second: int | None, half: str) -> str:
    words = cardinal(hour)
    if minute or second is not None:
        words += f" {'oh ' if 0 < minute < 10 else ''}{cardinal(minute) if minute else 'hundred'}"
    elif not half:
        words += " o'clock" if 0 < hour <= 12 else " hundred"
    if second is not None:
        words = f"{cardinal(hour)} {clock(minute)} and {cardinal(second)} seconds"
    return f"{words} {half.upper()}" if half else words


def clock(minute: int) -> str:
    return f"oh {cardinal(minute)}" if minute < 10 else cardinal(minute)


def month(n: int) -> str:
    return _MONTHS[n - 1]


def date(day: int, month: int, in_year: int | None, previous: str) -> str:
    words = f"{_MONTHS[month - 1]} {ordinal(day)}"
    if in_year is None:
        return words
    return f"{words}, {year(in_year) if in_year in YEARS else cardinal(in_year)}"


def fractions() -> dict[tuple[int, int], str]:
    words = {(1, 2): "one half"}
    for below in range(3, 11):
        part = "quarter" if below == 4 else ordinal(below)
        for above in range(1, below):
            words[above, below] = f"{cardinal(above)} {part}{'s' if above > 1 else ''}"
    words[1, 16], words[3, 16] = "one sixteenth", "three sixteenths"
    words[1, 100], words[1, 1000] = "one hundredth", "one thousandth"
    return words


FRACTIONS = fractions()


def spell(digits: str) -> str:
    """Return the digits, one word for each."""
    return " ".join(_SMALL[int(digit)] for digit in digits)


def pairs(digits: str) -> str:
    """Return digits as a name: two oh four, fifteen forty-nine, twelve hundred."""
    n = int(digits)
    if len(digits) == 2 and digits[0] == "0":
        return f"oh {cardinal(n)}" if n else "zero zero"
    if len(digits) > 4 or (len(digits) > 1 and digits[0] == "0"):
        return spell(digits)
    if len(digits) < 3 or n % 1000 < 10 or (len(digits) == 3 and n % 100 == 0):
        return cardinal(n)
    return year(n)


def phone_part(digits: str) -> str:
    """Return a group of a telephone number: 800 is eight hundred, all others are spelled."""
    return cardinal(int(digits)) if re.fullmatch("[2-9]00", digits) else spell(digits)


def decimal(number: str) -> str:
    whole, mark, decimals = number.partition(".")
    return f"{cardinal(int(whole))} point {spell(decimals)}" if mark else cardinal(int(whole))
