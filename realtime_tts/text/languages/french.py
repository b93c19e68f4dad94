"""French, with the numbers of France."""

from __future__ import annotations

from realtime_tts.text.languages.language import Abbreviation, Currency, Kind, Language, Noun

_SMALL = (
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"
    " dix-sept dix-huit dix-neuf"
).split()
_TENS = "  vingt trente quarante cinquante soixante soixante".split(" ")
_MONTHS = (
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"
).split()
_POWERS = ((10**12, "billion"), (10**9, "milliard"), (10**6, "million"))


def cardinal(n: int) -> str:
    return count(n, "m")


def count(n: int, gender: str) -> str:
    words = []
    for power, name in _POWERS:
        many, n = divmod(n, power)
        if many:
            words.append(f"{_thousands(many, 'un', last=True)} {name}{'s' if many > 1 else ''}")
    if n or not words:
        words.append(_thousands(n, "une" if gender == "f" else "un", last=True))
    return " ".join(words)


def _thousands(n: int, one: str, last: bool) -> str:
    thousands, rest = divmod(n, 1000)
    words = []
    if thousands:
        words.append("mille" if thousands == 1 else f"{_hundreds(thousands, 'un', False)} mille")
    if rest or not thousands:
        words.append(_hundreds(rest, one, last))
    return " ".join(words)


def _hundreds(n: int, one: str, last: bool) -> str:
    """`last`: nothing follows but a noun, so that cents and vingts take their s."""
    hundreds, rest = divmod(n, 100)
    words = []
    if hundreds:
        plural = "s" if hundreds > 1 and not rest and last else ""
        words.append(f"cent{plural}" if hundreds == 1 else f"{_SMALL[hundreds]} cent{plural}")
    if rest or not hundreds:
        words.append(_below_hundred(rest, one, last))
    return " ".join(words)


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
    if n == 1:
        return "première" if mark in ("re", "ère") else "premier"
    words = _thousands(n, "un", last=False) if n < 10**6 else cardinal(n)
    if words.endswith("cinq"):
        return words + "uième"
    if words.endswith("neuf"):
        return words[:-1] + "vième"
    return words.removesuffix("e") + "ième"


def time(hour: int, minute: int, second: int | None, half: str) -> str:
    words = f"{count(hour, 'f')} heure{'s' if hour > 1 else ''}"
    if minute or second:
        words += f" {count(minute, 'f')}"
    return words if not second else f"{words} et {count(second, 'f')} seconde{'s'[: second - 1]}"


def date(day: int, month: int, in_year: int | None, previous: str) -> str:
    words = f"{'premier' if day == 1 else cardinal(day)} {_MONTHS[month - 1]}"
    return words if in_year is None else f"{words} {cardinal(in_year)}"


def _of(noun: str) -> str:
    return f" d'{noun}" if noun[0] in "aeiouéh" else f" de {noun}"


def _plural(words: str, gender: str = "m") -> Noun:
    """The plural takes its s behind the first word."""
    first, space, rest = words.partition(" ")
    return Noun(words, f"{first}s{space}{rest}", gender)


def _abbreviations() -> dict[str, Abbreviation]:
    table = {
        "Mme": Abbreviation("Madame", Kind.TITLE, bare=True),
        "Mmes": Abbreviation("Mesdames", Kind.TITLE, bare=True),
        "Mlle": Abbreviation("Mademoiselle", Kind.TITLE, bare=True),
        "Dr": Abbreviation("Docteur", Kind.TITLE, bare=True),
        "Pr": Abbreviation("Professeur", Kind.TITLE, bare=True),
        "M": Abbreviation("Monsieur", Kind.TITLE),
        "p.ex": Abbreviation("par exemple", Kind.PHRASE),
        "c.-à-d": Abbreviation("c'est-à-dire", Kind.PHRASE),
        "etc": Abbreviation("et cetera", Kind.LAST),
        "env": Abbreviation("environ", Kind.PHRASE),
        "no": Abbreviation("numéro", Kind.NUMBER),
        "n°": Abbreviation("numéro", Kind.NUMBER, bare=True),
    }
    return table


_EURO = Currency(_plural("euro"), _plural("centime"))
_DOLLAR = Currency(_plural("dollar"), _plural("cent"))
_POUND = Currency(Noun("livre", "livres", "f"), Noun("penny", "pence"))
_MILLION, _MILLIARD = _plural("million"), _plural("milliard")

FRENCH = Language(
    name="french",
    codes=("fr",),
    cardinal=cardinal,
    count=count,
    ordinal=ordinal,
    year=cardinal,
    time=time,
    date=date,
    decimal_mark=",",
    group_marks=". \u00a0\u202f",
    ordinal_marks="ers?|re|ère|ème|e|nde?|des?",
    point="virgule",
    dot="point",
    minus="moins",
    plus="plus",
    to="à",
    percent="pour cent",
    degrees=_plural("degré"),
    number_sign="numéro",
    and_sign="et",
    operators={"+": "plus", "=": "égale", "×": "fois", "*": "fois", "÷": "divisé par"},
    currencies={
        "€": _EURO,
        "EUR": _EURO,
        "$": _DOLLAR,
        "USD": _DOLLAR,
        "£": _POUND,
        "GBP": _POUND,
        "CHF": Currency(_plural("franc suisse"), _plural("centime")),
        "¥": Currency(Noun("yen", "yens")),
    },
    units={
        "km": _plural("kilomètre"),
        "m": _plural("mètre"),
        "cm": _plural("centimètre"),
        "mm": _plural("millimètre"),
        "kg": _plural("kilogramme"),
        "g": _plural("gramme"),
        "mg": _plural("milligramme"),
        "l": _plural("litre"),
        "L": _plural("litre"),
        "ml": _plural("millilitre"),
        "min": _plural("minute", "f"),
        "s": _plural("seconde", "f"),
        "ms": _plural("milliseconde", "f"),
        "km/h": _plural("kilomètre par heure"),
        "m/s": _plural("mètre par seconde"),
        "m²": Noun("mètre carré", "mètres carrés"),
        "km²": Noun("kilomètre carré", "kilomètres carrés"),
        "m³": Noun("mètre cube", "mètres cubes"),
        "°C": _plural("degré Celsius"),
        "kW": _plural("kilowatt"),
        "kWh": Noun("kilowattheure", "kilowattheures"),
        "W": _plural("watt"),
        "V": _plural("volt"),
        "Hz": Noun("hertz", "hertz"),
        "Go": _plural("gigaoctet"),
        "Mo": _plural("mégaoctet"),
    },
    scales={
        "mille": Noun("mille", "mille"),
        "million": _MILLION,
        "millions": _MILLION,
        "milliard": _MILLIARD,
        "milliards": _MILLIARD,
        "Md": _MILLIARD,
    },
    fractions={
        (1, 2): "un demi",
        (1, 3): "un tiers",
        (2, 3): "deux tiers",
        (1, 4): "un quart",
        (3, 4): "trois quarts",
        (1, 5): "un cinquième",
        (1, 8): "un huitième",
    },
    mixed=" et ",
    money="{major} {minor}",
    of_scale=_of,
    singular_below=2.0,
    months={name: index + 1 for index, name in enumerate(_MONTHS)},
    abbreviations=_abbreviations(),
    phones=r"0\d(?:[ .-]\d{2}){4}",
    glued=r"(?P<hour>[01]?\d|2[0-4]) ?h ?(?P<minute>[0-5]\d)?(?!\w)",
    clock_words=("h",),
    whole_decimals=True,
)
