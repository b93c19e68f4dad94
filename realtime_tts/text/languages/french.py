"""French, with the numbers of France."""

from __future__ import annotations

from realtime_tts.text.languages import tables
from realtime_tts.text.languages.language import Currency, Kind, Language, Noun

_SMALL = (
    "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize"
    " dix-sept dix-huit dix-neuf"
).split()
_TENS = "  vingt trente quarante cinquante soixante soixante".split(" ")
_MONTHS = (
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
    """Say a number below 1,000. `last`: nothing follows but a noun, so that cents and vingts take
    their s."""
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


_ABBREVIATIONS = tables.abbreviations(
    {
        Kind.TITLE: "Mme Madame|Mmes Mesdames|Mlle Mademoiselle|Dr Docteur|Pr Professeur"
        "|M Monsieur",
        Kind.PHRASE: "p.ex par exemple|c.-à-d c'est-à-dire|env environ",
        Kind.LAST: "etc et cetera",
        Kind.NUMBER: "no numéro|n° numéro",
    },
    bare="Mme Mmes Mlle Dr Pr n°",
)
_UNITS = (
    tables.nouns(
        tables.plural_s,
        "km kilomètre|m mètre|cm centimètre|mm millimètre|kg kilogramme|g gramme|mg milligramme"
        "|l litre|L litre|ml millilitre|km/h kilomètre par heure|m/s mètre par seconde"
        "|°C degré Celsius|kW kilowatt|kWh kilowattheure|W watt|V volt|Go gigaoctet|Mo mégaoctet",
    )
    | tables.nouns(tables.plural_s, "min minute|s seconde|ms milliseconde", "f")
    | tables.nouns(tables.invariable, "Hz hertz")
    | {
        "m²": Noun("mètre carré", "mètres carrés"),
        "km²": Noun("kilomètre carré", "kilomètres carrés"),
        "m³": Noun("mètre cube", "mètres cubes"),
    }
)

FRENCH = Language(
    name="french",
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
    degrees=tables.plural_s("degré"),
    number_sign="numéro",
    and_sign="et",
    operators={"+": "plus", "=": "égale", "×": "fois", "*": "fois", "÷": "divisé par"},
    currencies=tables.by_name(
        {
            "€ EUR": Currency(tables.plural_s("euro"), tables.plural_s("centime")),
            "$ USD": Currency(tables.plural_s("dollar"), tables.plural_s("cent")),
            "£ GBP": Currency(tables.plural_s("livre", "f"), Noun("penny", "pence")),
            "CHF": Currency(tables.plural_s("franc suisse"), tables.plural_s("centime")),
            "¥": Currency(tables.plural_s("yen")),
        }
    ),
    units=_UNITS,
    scales=tables.by_name(
        {
            "mille": tables.invariable("mille"),
            "million millions": tables.plural_s("million"),
            "milliard milliards Md": tables.plural_s("milliard"),
        }
    ),
    fractions=tables.fractions(
        "un demi|un tiers|deux tiers|un quart|trois quarts|un cinquième|un huitième"
    ),
    mixed=" et ",
    money="{major} {minor}",
    of_scale=_of,
    singular_below=2.0,
    months=tables.numbered(_MONTHS),
    abbreviations=_ABBREVIATIONS,
    phones=r"0\d(?:[ .-]\d{2}){4}",
    glued=r"(?P<hour>[01]?\d|2[0-4]) ?h ?(?P<minute>[0-5]\d)?(?!\w)",
    clock_words=("h",),
    whole_decimals=True,
)
