"""German."""

from __future__ import annotations

from realtime_tts.text.languages.language import Abbreviation, Currency, Kind, Language, Noun

_SMALL = (
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn"
    " sechzehn siebzehn achtzehn neunzehn"
).split()
_TENS = "  zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split(" ")
_POWERS = (
    (10**12, "Billion", "Billionen"),
    (10**9, "Milliarde", "Milliarden"),
    (10**6, "Million", "Millionen"),
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
    words = []
    for power, single, several in _POWERS:
        many, n = divmod(n, power)
        if many:
            words.append(f"eine {single}" if many == 1 else f"{_thousands(many, 'eins')} {several}")
    if n or not words:
        words.append(_thousands(n, one))
    return " ".join(words)


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
    return f"{words} {year(in_year) if 1100 <= in_year < 2100 else cardinal(in_year)}"


def _abbreviations() -> dict[str, Abbreviation]:
    table = {}
    for kind, pairs in (
        (Kind.TITLE, "Dr Doktor|Prof Professor|Hr Herr|Fr Frau|St Sankt"),
        (
            Kind.PHRASE,
            "z.B zum Beispiel|d.h das heißt|u.a unter anderem|ca circa|bzw beziehungsweise"
            "|vgl vergleiche|inkl inklusive|zzgl zuzüglich|evtl eventuell|ggf gegebenenfalls",
        ),
        (Kind.LAST, "usw und so weiter|etc et cetera"),
        (Kind.NUMBER, "Nr Nummer|Kap Kapitel|Abb Abbildung|Bd Band"),
    ):
        for pair in pairs.split("|"):
            short, _, words = pair.partition(" ")
            table[short] = Abbreviation(words, kind)
    return table


def _same(word: str, gender: str = "m") -> Noun:
    return Noun(word, word, gender)


_CENT = _same("Cent")
_EURO, _DOLLAR = Currency(_same("Euro"), _CENT), Currency(_same("Dollar"), _CENT)
_POUND = Currency(_same("Pfund", "n"), _same("Pence"))
_MILLION = Noun("Million", "Millionen", "f")
_MILLIARDE = Noun("Milliarde", "Milliarden", "f")

GERMAN = Language(
    name="german",
    codes=("de",),
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
    degrees=_same("Grad", "n"),
    number_sign="Nummer",
    and_sign="und",
    operators={"+": "plus", "=": "gleich", "×": "mal", "*": "mal", "÷": "geteilt durch"},
    currencies={
        "€": _EURO,
        "EUR": _EURO,
        "$": _DOLLAR,
        "USD": _DOLLAR,
        "£": _POUND,
        "GBP": _POUND,
        "CHF": Currency(_same("Franken"), _same("Rappen")),
        "¥": Currency(_same("Yen")),
    },
    units={
        "km": _same("Kilometer"),
        "m": _same("Meter"),
        "cm": _same("Zentimeter"),
        "mm": _same("Millimeter"),
        "kg": _same("Kilogramm", "n"),
        "g": _same("Gramm", "n"),
        "mg": _same("Milligramm", "n"),
        "l": _same("Liter"),
        "ml": _same("Milliliter"),
        "Uhr": _same("Uhr", "n"),
        "h": Noun("Stunde", "Stunden", "f"),
        "Std": Noun("Stunde", "Stunden", "f"),
        "min": Noun("Minute", "Minuten", "f"),
        "Min": Noun("Minute", "Minuten", "f"),
        "s": Noun("Sekunde", "Sekunden", "f"),
        "ms": Noun("Millisekunde", "Millisekunden", "f"),
        "km/h": _same("Kilometer pro Stunde"),
        "m/s": _same("Meter pro Sekunde"),
        "m²": _same("Quadratmeter"),
        "km²": _same("Quadratkilometer"),
        "m³": _same("Kubikmeter"),
        "°C": _same("Grad Celsius", "n"),
        "kW": _same("Kilowatt", "n"),
        "kWh": Noun("Kilowattstunde", "Kilowattstunden", "f"),
        "W": _same("Watt", "n"),
        "V": _same("Volt", "n"),
        "Hz": _same("Hertz", "n"),
        "GB": _same("Gigabyte", "n"),
        "MB": _same("Megabyte", "n"),
    },
    scales={
        "Tausend": _same("tausend"),
        "Million": _MILLION,
        "Millionen": _MILLION,
        "Mio": _MILLION,
        "Mio.": _MILLION,
        "Milliarde": _MILLIARDE,
        "Milliarden": _MILLIARDE,
        "Mrd": _MILLIARDE,
        "Mrd.": _MILLIARDE,
    },
    fractions={
        (1, 2): "ein halb",
        (1, 3): "ein Drittel",
        (2, 3): "zwei Drittel",
        (1, 4): "ein Viertel",
        (3, 4): "drei Viertel",
        (1, 5): "ein Fünftel",
        (1, 8): "ein Achtel",
    },
    mixed=" und ",
    money="{major} {minor}",
    date_mark=".",
    dotted_ordinals=True,
    clock_words=("Uhr",),
    glued=r"(?P<hour>[01]?\d|2[0-4])\.(?P<minute>[0-5]\d) ?Uhr",
    months={name: index + 1 for index, name in enumerate(_MONTHS)} | {"Jänner": 1},
    abbreviations=_abbreviations(),
)
