"""Spanish."""

from __future__ import annotations

from realtime_tts.text.languages.language import Abbreviation, Currency, Kind, Language, Noun

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
_MONTHS = (
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"
).split()
_ORDINALS = (
    " primer segund tercer cuart quint sext séptim octav noven décim undécim duodécim"
    " decimotercer decimocuart decimoquint decimosext decimoséptim decimoctav decimonoven vigésim"
).split(" ")


def cardinal(n: int) -> str:
    return _millions(n, "")


def count(n: int, gender: str) -> str:
    return _millions(n, gender)


def _millions(n: int, gender: str) -> str:
    words = []
    for power, single, several in ((10**12, "billón", "billones"), (10**6, "millón", "millones")):
        many, n = divmod(n, power)
        if many:
            words.append(f"un {single}" if many == 1 else f"{_thousands(many, 'm')} {several}")
    if n or not words:
        words.append(_thousands(n, gender))
    return " ".join(words)


def _thousands(n: int, gender: str) -> str:
    thousands, rest = divmod(n, 1000)
    words = []
    if thousands:
        before = "f" if gender == "f" else "m"
        words.append("mil" if thousands == 1 else f"{_hundreds(thousands, before)} mil")
    if rest or not thousands:
        words.append(_hundreds(rest, gender))
    return " ".join(words)


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
    """gender "": the number stands alone."""
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
    if not 0 < n < len(_ORDINALS):
        return cardinal(n)
    if mark.endswith("er"):
        return _ORDINALS[n]
    return _ORDINALS[n] + ("a" if mark.endswith(("ª", "a")) else "o")


def time(hour: int, minute: int, second: int | None, half: str) -> str:
    words = count(hour, "f")
    if minute or second:
        words += f" y {cardinal(minute)}"
    elif not half:
        words += " en punto"
    if second:
        words += f" con {count(second, 'm')} segundos"
    return f"{words} {'de la mañana' if half == 'am' else 'de la tarde'}" if half else words


def date(day: int, month: int, in_year: int | None, previous: str) -> str:
    words = f"{'uno' if day == 1 else cardinal(day)} de {_MONTHS[month - 1]}"
    return words if in_year is None else f"{words} de {cardinal(in_year)}"


def _plural(words: str, gender: str = "m") -> Noun:
    first, space, rest = words.partition(" ")
    return Noun(words, f"{first}s{space}{rest}", gender)


def _abbreviations() -> dict[str, Abbreviation]:
    table = {}
    for kind, pairs in (
        (
            Kind.TITLE,
            "Sr señor|Sra señora|Srta señorita|Dr doctor|Dra doctora|Prof profesor|D don|Dña doña"
            "|Ud usted|Uds ustedes",
        ),
        (Kind.PHRASE, "p.ej por ejemplo|aprox aproximadamente|pág página|tel teléfono"),
        (Kind.LAST, "etc etcétera|Avda Avenida"),
        (Kind.NUMBER, "núm número|Núm Número"),
    ):
        for pair in pairs.split("|"):
            short, _, words = pair.partition(" ")
            table[short] = Abbreviation(words, kind)
    return table


_EURO = Currency(_plural("euro"), _plural("céntimo"))
_DOLLAR = Currency(Noun("dólar", "dólares"), _plural("centavo"))
_POUND = Currency(_plural("libra", "f"), Noun("penique", "peniques"))
_MILLON = Noun("millón", "millones")

SPANISH = Language(
    name="spanish",
    codes=("es",),
    cardinal=cardinal,
    count=count,
    ordinal=ordinal,
    year=cardinal,
    time=time,
    date=date,
    decimal_mark=",",
    group_marks=". \u00a0\u202f",
    ordinal_marks=r"\.?[ºª]|\.er|er(?!\w)",
    point="coma",
    dot="punto",
    minus="menos",
    plus="más",
    to="a",
    percent="por ciento",
    degrees=_plural("grado"),
    number_sign="número",
    and_sign="y",
    operators={"+": "más", "=": "igual a", "×": "por", "*": "por", "÷": "dividido entre"},
    currencies={
        "€": _EURO,
        "EUR": _EURO,
        "$": _DOLLAR,
        "USD": _DOLLAR,
        "£": _POUND,
        "GBP": _POUND,
        "CHF": Currency(_plural("franco"), _plural("céntimo")),
        "¥": Currency(Noun("yen", "yenes")),
    },
    units={
        "km": _plural("kilómetro"),
        "m": _plural("metro"),
        "cm": _plural("centímetro"),
        "mm": _plural("milímetro"),
        "kg": _plural("kilogramo"),
        "g": _plural("gramo"),
        "mg": _plural("miligramo"),
        "l": _plural("litro"),
        "L": _plural("litro"),
        "ml": _plural("mililitro"),
        "h": _plural("hora", "f"),
        "min": _plural("minuto"),
        "s": _plural("segundo"),
        "ms": _plural("milisegundo"),
        "km/h": _plural("kilómetro por hora"),
        "m/s": _plural("metro por segundo"),
        "m²": Noun("metro cuadrado", "metros cuadrados"),
        "km²": Noun("kilómetro cuadrado", "kilómetros cuadrados"),
        "m³": Noun("metro cúbico", "metros cúbicos"),
        "°C": _plural("grado Celsius"),
        "kW": Noun("kilovatio", "kilovatios"),
        "W": _plural("vatio"),
        "V": _plural("voltio"),
        "Hz": Noun("hercio", "hercios"),
        "GB": Noun("gigabyte", "gigabytes"),
        "MB": Noun("megabyte", "megabytes"),
    },
    scales={"mil": Noun("mil", "mil"), "millón": _MILLON, "millones": _MILLON},
    fractions={
        (1, 2): "un medio",
        (1, 3): "un tercio",
        (2, 3): "dos tercios",
        (1, 4): "un cuarto",
        (3, 4): "tres cuartos",
        (1, 5): "un quinto",
        (1, 8): "un octavo",
    },
    mixed=" y ",
    money="{major} con {minor}",
    of_scale=lambda noun: f" de {noun}",
    singular_below=0.0,
    halves={"am": "am", "pm": "pm", "a.m": "am", "p.m": "pm", "a.m.": "am", "p.m.": "pm"},
    abbreviations=_abbreviations(),
    whole_decimals=True,
)
