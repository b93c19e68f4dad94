"""The words for Spanish numbers, times and dates."""

from __future__ import annotations

from realtime_tts.text.languages import tables

_SMALL = (
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince"
    " dieciséis diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro"
    " veinticinco veintiséis veintisiete veintiocho veintinueve"
).split()
_TENS = "   treinta cuarenta cincuenta sesenta setenta ochenta noventa".split(" ")
_HUNDREDS = (
    " ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos"
    " novecientos"
).split(" ")
MONTHS = (
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
).split()
_MILLIONS = ((10**12, "un billón", "billones"), (10**6, "un millón", "millones"))
_THOUSANDS = ((1000, "mil", "mil"),)
_ORDINALS = (
    " primer segund tercer cuart quint sext séptim octav noven décim undécim duodécim"
    " decimotercer decimocuart decimoquint decimosext decimoséptim decimoctav decimonoven vigésim"
).split(" ")


_ORDINAL_TENS = (
    "  vigesimo trigesimo cuadragesimo quincuagesimo sexagesimo septuagesimo octogesimo nonagesimo"
).split(" ")
_WHOLE_TENS = {20: "vigésim", 30: "trigésim", 40: "cuadragésim", 50: "quincuagésim"}
_WHOLE_TENS |= {60: "sexagésim", 70: "septuagésim", 80: "octogésim", 90: "nonagésim"}
_WHOLE_TENS |= {100: "centésim"}


def cardinal(n: int) -> str:
    return count(n, "")


def count(n: int, gender: str) -> str:
    """Return a number before a noun of a gender; with gender "" it stands alone."""
    return tables.by_powers(
        n, _MILLIONS, lambda many: _thousands(many, "m"), lambda rest: _thousands(rest, gender)
    )


def _thousands(n: int, gender: str) -> str:
    return tables.by_powers(
        n,
        _THOUSANDS,
        lambda many: _hundreds(many, gender or "m"),
        lambda rest: _hundreds(rest, gender),
    )


def _hundreds(n: int, gender: str) -> str:
    if n == 100:
        return "cien"
    hundreds, rest = divmod(n, 100)
    words = []
    if hundreds:
        word = _HUNDREDS[hundreds]
        words.append(word[:-2] + "as" if gender == "f" and hundreds > 1 else word)
    if rest or not hundreds:
        words.append(_below_hundred(rest, gender))
    return " ".join(words)


def _below_hundred(n: int, gender: str) -> str:
    if n < 30:
        word = _SMALL[n]
    else:
        tens, rest = divmod(n, 10)
        word = _TENS[tens] + (f" y {_SMALL[rest]}" if rest else "")
    if n % 10 != 1 or n == 11 or not gender:
        return word
    if gender == "f":
        return word[:-1] + "a"
    return "veintiún" if n == 21 else word[:-1]


def ordinal(n: int, mark: str = "") -> str:
    """Return an ordinal. `mark`: what is written behind the digits; 1.er is a short form."""
    if not 0 < n <= 100:
        return cardinal(n)
    tens, ones = divmod(n, 10)
    word = _WHOLE_TENS.get(n) or (_ORDINALS[n] if n < 20 else "")
    word = word or _ORDINAL_TENS[tens] + _ORDINALS[ones]
    if mark.endswith("er"):
        return word
    return word + ("a" if mark.endswith(("ª", "a")) else "o")


def time(hour: int, minute: int, second: int | None, half: str) -> str:
    words = count(hour, "f")
    if minute or second:
        words += f" y {cardinal(minute)}"
    elif not half:
        words += " en punto"
    if second:
        words += f" con {count(second, 'm')} segundos"
    part = "mañana" if half == "am" else "noche" if 8 <= hour < 12 else "tarde"
    return f"{words} de la {part}" if half else words


def date(day: int, month: int, in_year: int | None, previous: str) -> str:
    words = f"{'uno' if day == 1 else cardinal(day)} de {MONTHS[month - 1]}"
    return words if in_year is None else f"{words} de {cardinal(in_year)}"
