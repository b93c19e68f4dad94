"""The words for French numbers, times and dates, with the numbers of France."""

from __future__ import annotations

from realtime_tts.text.languages import tables

_SMALL = (
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"
    " dix-sept dix-huit dix-neuf"
).split()
_TENS = "  vingt trente quarante cinquante soixante soixante".split(" ")
MONTHS = (
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"
).split()
_MILLIONS = (
    (10**12, "un billion", "billions"),
    (10**9, "un milliard", "milliards"),
    (10**6, "un million", "millions"),
)
_THOUSANDS = ((1000, "mille", "mille"),)


def cardinal(n: int) -> str:
    return count(n, "m")


def count(n: int, gender: str) -> str:
    one = "une" if gender == "f" else "un"
    return tables.by_powers(
        n,
        _MILLIONS,
        lambda many: _thousands(many, "un", last=True),
        lambda rest: _thousands(rest, one, last=True),
    )


def _thousands(n: int, one: str, last: bool) -> str:
    return tables.by_powers(
        n,
        _THOUSANDS,
        lambda many: _hundreds(many, "un", last=False),
        lambda rest: _hundreds(rest, one, last),
    )


def _hundreds(n: int, one: str, last: bool) -> str:
    """Return the words for a number below 1,000. `last`: only a noun follows, so that cents and
    vingts take their s."""
    several = "cents" if last and n % 100 == 0 else "cent"
    return tables.by_powers(
        n,
        ((100, "cent", several),),
        lambda many: _SMALL[many],
        lambda rest: _below_hundred(rest, one, last),
    )


def _below_hundred(n: int, one: str, last: bool) -> str:
    if n == 1:
        return one
    if n < 20:
        return _SMALL[n]
    if n >= 80:
        rest = n - 80
        if not rest:
            return "quatre-vingts" if last else "quatre-vingt"
        return f"quatre-vingt-{one if rest == 1 else _SMALL[rest]}"
    tens, rest = divmod(n, 10)
    if tens == 7:
        rest += 10
    if not rest:
        return _TENS[tens]
    if rest in (1, 11):
        return f"{_TENS[tens]} et {one if rest == 1 else 'onze'}"
    return f"{_TENS[tens]}-{_SMALL[rest]}"


def ordinal(n: int, mark: str = "") -> str:
    mark = mark.replace("ᵉ", "e").replace("ʳ", "r")
    plural = "s" if mark.endswith("s") else ""
    if n == 1:
        return ("première" if mark.rstrip("s") in ("re", "ère") else "premier") + plural
    if mark.startswith("n"):
        return "seconde" if mark == "nde" else "second"
    words = _thousands(n, "un", last=False) if n < 10**6 else cardinal(n)
    if words.endswith("cinq"):
        words += "u"
    if words.endswith("neuf"):
        words = words[:-1] + "v"
    return words.removesuffix("e") + "ième" + plural


def time(hour: int, minute: int, second: int | None, half: str) -> str:
    words = f"{count(hour, 'f')} heure{'s' if hour > 1 else ''}"
    if minute or second:
        words += f" {count(minute, 'f')}"
    return words if not second else f"{words} et {count(second, 'f')} seconde{'s'[: second - 1]}"


def date(day: int, month: int, in_year: int | None, previous: str) -> str:
    words = f"{'premier' if day == 1 else cardinal(day)} {MONTHS[month - 1]}"
    return words if in_year is None else f"{words} {cardinal(in_year)}"
