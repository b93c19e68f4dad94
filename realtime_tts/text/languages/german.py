"""German."""

from __future__ import annotations

from realtime_tts.text.languages import tables
from realtime_tts.text.languages.language import YEARS, Currency, Kind, Language, Noun

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
_MONTHS = (
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


def _stem(n: int) -> str:
    last = n % 100
    if last in (1, 3, 7, 8):
        words = cardinal(n)
        for whole, stem in (("eins", "erst"), ("drei", "dritt"), ("sieben", "siebt")):
            words = words.removesuffix(whole) + stem if words.endswith(whole) else words
        return words
    return cardinal(n) + ("t" if 0 < last < 20 else "st")


def ordinal(n: int, previous: str = "") -> str:
    if previous in _NOMINATIVE:
        return _stem(n) + "e"
    return _stem(n) + ("en" if previous in _OTHER_CASES else "er")


def year(n: int) -> str:
    century, rest = divmod(n, 100)
    if not 11 <= century <= 19:
        return cardinal(n)
    return f"{_SMALL[century]}hundert" + (cardinal(rest) if rest else "")


def time(hour: int, minute: int, second: int | None, half: str) -> str:
    words = f"{count(hour, 'n')} Uhr" + (f" {cardinal(minute)}" if minute or second else "")
    return words if not second else f"{words} und {cardinal(second)} Sekunden"


def date(day: int, month: int, in_year: int | None, previous: str) -> str:
    words = f"{ordinal(day, previous)} {_MONTHS[month - 1]}"
    if in_year is None:
        return words
    return f"{words} {year(in_year) if in_year in YEARS else cardinal(in_year)}"


_ABBREVIATIONS = tables.abbreviations(
    {
        Kind.TITLE: "Dr Doktor|Prof Professor|Hr Herr|Fr Frau|St Sankt",
        Kind.PHRASE: "z.B zum Beispiel|d.h das heißt|u.a unter anderem|ca circa"
        "|bzw beziehungsweise|vgl vergleiche|inkl inklusive|zzgl zuzüglich|evtl eventuell"
        "|ggf gegebenenfalls",
        Kind.LAST: "usw und so weiter|etc et cetera",
        Kind.NUMBER: "Nr Nummer|Kap Kapitel|Abb Abbildung|Bd Band",
    }
)
_UNITS = (
    tables.nouns(
        tables.invariable,
        "km Kilometer|m Meter|cm Zentimeter|mm Millimeter|l Liter|ml Milliliter"
        "|km/h Kilometer pro Stunde|m/s Meter pro Sekunde|m² Quadratmeter|km² Quadratkilometer"
        "|m³ Kubikmeter",
    )
    | tables.nouns(
        tables.invariable,
        "kg Kilogramm|g Gramm|mg Milligramm|Uhr Uhr|°C Grad Celsius|kW Kilowatt|W Watt|V Volt"
        "|Hz Hertz|GB Gigabyte|MB Megabyte",
        "n",
    )
    | tables.by_name(
        {
            "h Std": Noun("Stunde", "Stunden", "f"),
            "min Min": Noun("Minute", "Minuten", "f"),
            "s": Noun("Sekunde", "Sekunden", "f"),
            "ms": Noun("Millisekunde", "Millisekunden", "f"),
            "kWh": Noun("Kilowattstunde", "Kilowattstunden", "f"),
        }
    )
)
_CENT = tables.invariable("Cent")

GERMAN = Language(
    name="german",
    cardinal=cardinal,
    count=count,
    ordinal=ordinal,
    year=year,
    time=time,
    date=date,
    decimal_mark=",",
    group_marks=".\u00a0\u202f",
    ordinal_marks="",
    point="Komma",
    dot="Punkt",
    minus="minus",
    plus="plus",
    to="bis",
    percent="Prozent",
    degrees=tables.invariable("Grad", "n"),
    number_sign="Nummer",
    and_sign="und",
    operators={"+": "plus", "=": "gleich", "×": "mal", "*": "mal", "÷": "geteilt durch"},
    currencies=tables.by_name(
        {
            "€ EUR": Currency(tables.invariable("Euro"), _CENT),
            "$ USD": Currency(tables.invariable("Dollar"), _CENT),
            "£ GBP": Currency(tables.invariable("Pfund", "n"), tables.invariable("Pence")),
            "CHF": Currency(tables.invariable("Franken"), tables.invariable("Rappen")),
            "¥": Currency(tables.invariable("Yen")),
        }
    ),
    units=_UNITS,
    scales=tables.by_name(
        {
            "Tausend": tables.invariable("tausend"),
            "Million Millionen Mio Mio.": Noun("Million", "Millionen", "f"),
            "Milliarde Milliarden Mrd Mrd.": Noun("Milliarde", "Milliarden", "f"),
        }
    ),
    fractions=tables.fractions(
        "ein halb|ein Drittel|zwei Drittel|ein Viertel|drei Viertel|ein Fünftel|ein Achtel"
    ),
    mixed=" und ",
    money="{major} {minor}",
    date_mark=".",
    dotted_ordinals=True,
    clock_words=("Uhr",),
    glued=r"(?P<hour>[01]?\d|2[0-4])\.(?P<minute>[0-5]\d) ?Uhr",
    months=tables.numbered(_MONTHS) | {"Jänner": 1},
    abbreviations=_ABBREVIATIONS,
)
