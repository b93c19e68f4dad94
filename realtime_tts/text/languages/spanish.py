"""Spanish."""

from __future__ import annotations

from realtime_tts.text.languages import tables
from realtime_tts.text.languages.language import Currency, Kind, Language, Noun

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
_MILLIONS = ((10**12, "un billón", "billones"), (10**6, "un millón", "millones"))
_THOUSANDS = ((1000, "mil", "mil"),)
_ORDINALS = (
    " primer segund tercer cuart quint sext séptim octav noven décim undécim duodécim"
    " decimotercer decimocuart decimoquint decimosext decimoséptim decimoctav decimonoven vigésim"
).split(" ")


def cardinal(n: int) -> str:
    return count(n, "")


def count(n: int, gender: str) -> str:
    """Say a number before a noun of a gender; with gender "" it stands alone."""
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


_ABBREVIATIONS = tables.abbreviations(
    {
        Kind.TITLE: "Sr señor|Sra señora|Srta señorita|Dr doctor|Dra doctora|Prof profesor|D don"
        "|Dña doña|Ud usted|Uds ustedes",
        Kind.PHRASE: "p.ej por ejemplo|aprox aproximadamente|pág página|tel teléfono",
        Kind.LAST: "etc etcétera|Avda Avenida",
        Kind.NUMBER: "núm número|Núm Número",
    }
)
_UNITS = (
    tables.nouns(
        tables.plural_s,
        "km kilómetro|m metro|cm centímetro|mm milímetro|kg kilogramo|g gramo|mg miligramo"
        "|l litro|L litro|ml mililitro|min minuto|s segundo|ms milisegundo"
        "|km/h kilómetro por hora|m/s metro por segundo|°C grado Celsius|kW kilovatio|W vatio"
        "|V voltio|Hz hercio|GB gigabyte|MB megabyte",
    )
    | tables.nouns(tables.plural_s, "h hora", "f")
    | {
        "m²": Noun("metro cuadrado", "metros cuadrados"),
        "km²": Noun("kilómetro cuadrado", "kilómetros cuadrados"),
        "m³": Noun("metro cúbico", "metros cúbicos"),
    }
)

SPANISH = Language(
    name="spanish",
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
    degrees=tables.plural_s("grado"),
    number_sign="número",
    and_sign="y",
    operators={"+": "más", "=": "igual a", "×": "por", "*": "por", "÷": "dividido entre"},
    currencies=tables.by_name(
        {
            "€ EUR": Currency(tables.plural_s("euro"), tables.plural_s("céntimo")),
            "$ USD": Currency(Noun("dólar", "dólares"), tables.plural_s("centavo")),
            "£ GBP": Currency(tables.plural_s("libra", "f"), tables.plural_s("penique")),
            "CHF": Currency(tables.plural_s("franco"), tables.plural_s("céntimo")),
            "¥": Currency(Noun("yen", "yenes")),
        }
    ),
    units=_UNITS,
    scales=tables.by_name(
        {"mil": tables.invariable("mil"), "millón millones": Noun("millón", "millones")}
    ),
    fractions=tables.fractions(
        "un medio|un tercio|dos tercios|un cuarto|tres cuartos|un quinto|un octavo"
    ),
    mixed=" y ",
    money="{major} con {minor}",
    of_scale=lambda noun: f" de {noun}",
    singular_below=0.0,
    halves={"am": "am", "pm": "pm", "a.m": "am", "p.m": "pm", "a.m.": "am", "p.m.": "pm"},
    abbreviations=_ABBREVIATIONS,
    whole_decimals=True,
)
