"""English."""

from __future__ import annotations

from realtime_tts.text.languages import tables
from realtime_tts.text.languages.language import YEARS, Abbreviation, Currency, Kind, Language, Noun

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
_SHORT_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


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
    """The ordinal of a cardinal number that is one word."""
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
    """The decade that begins with the year `n`, or with the last two digits of one."""
    words = year(n) if n >= 100 else cardinal(n)
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


def date(day: int, month: int, in_year: int | None, previous: str) -> str:
    words = f"{_MONTHS[month - 1]} {ordinal(day)}"
    if in_year is None:
        return words
    return f"{words}, {year(in_year) if in_year in YEARS else cardinal(in_year)}"


def _fractions() -> dict[tuple[int, int], str]:
    words = {(1, 2): "one half"}
    for below in range(3, 11):
        part = "quarter" if below == 4 else ordinal(below)
        for above in range(1, below):
            words[above, below] = f"{cardinal(above)} {part}{'s' if above > 1 else ''}"
    words[1, 16], words[3, 16] = "one sixteenth", "three sixteenths"
    words[1, 100], words[1, 1000] = "one hundredth", "one thousandth"
    return words


_ABBREVIATIONS = tables.abbreviations(
    {
        Kind.TITLE: "Rev Reverend|Gen General|Capt Captain|Col Colonel|Lt Lieutenant|Sgt Sergeant"
        "|Sen Senator|Gov Governor|Hon Honorable|Mt Mount|Ft Fort",
        Kind.PHRASE: "Mr Mister|Mrs Missus|Ms Miz|Messrs Messieurs|Prof Professor|vs versus"
        "|e.g for example|i.e that is|approx approximately|cf compare|E.g For example|I.e That is"
        "|Approx Approximately|dept department|Dept Department",
        Kind.LAST: "etc et cetera|Jr Junior|Sr Senior|Inc Incorporated|Ltd Limited"
        "|Corp Corporation|Co Company|Ave Avenue|Blvd Boulevard|Rd Road|Hwy Highway|Apt Apartment"
        "|a.k.a also known as",
        Kind.NUMBER: "No number|no number|Nos numbers|nos numbers|Vol volume|vol volume|Ch chapter"
        "|ch chapter|pp pages|Fig figure|fig figure|Sec section|Art article",
    }
) | {
    "St": Abbreviation("Saint", Kind.PLACE, "Street"),
    "Dr": Abbreviation("Doctor", Kind.PLACE, "Drive"),
}


def _measure(words: str, gender: str) -> Noun:
    """The plural takes its s before "per": megabits per second."""
    first, per, rest = words.partition(" per ")
    return Noun(words, f"{first}s{per}{rest}", gender)


_UNITS = (
    tables.nouns(
        _measure,
        "km kilometer|cm centimeter|mm millimeter|m meter|nm nanometer|mi mile|yd yard|kg kilogram"
        "|g gram|mg milligram|lb pound|oz ounce|l liter|L liter|ml milliliter|mL milliliter"
        "|ms millisecond|s second|sec second|min minute|h hour|hr hour|kWh kilowatt hour"
        "|kW kilowatt|MW megawatt|GW gigawatt|W watt|V volt|mV millivolt|kB kilobyte|KB kilobyte"
        "|MB megabyte|GB gigabyte|TB terabyte|Mbps megabit per second|Gbps gigabit per second"
        "|dB decibel|mAh milliamp hour|kcal kilocalorie|kPa kilopascal|N newton|J joule"
        "|kJ kilojoule|gal gallon|qt quart|ha hectare|μm micrometer|µm micrometer"
        "|lbs pound|hrs hour|mins minute|secs second|mph mile per hour|mpg mile per gallon"
        "|km/h kilometer per hour|kph kilometer per hour|m/s meter per second"
        "|m² square meter|km² square kilometer|m³ cubic meter",
    )
    | tables.nouns(tables.invariable, "Hz hertz|kHz kilohertz|MHz megahertz|GHz gigahertz")
    | {
        "ft": Noun("foot", "feet"),
        "°C": Noun("degree Celsius", "degrees Celsius"),
        "°F": Noun("degree Fahrenheit", "degrees Fahrenheit"),
    }
)
_CENT = Noun("cent", "cents")

ENGLISH = Language(
    name="english",
    cardinal=cardinal,
    count=lambda n, gender: cardinal(n),
    ordinal=ordinal,
    year=year,
    time=time,
    date=date,
    decimal_mark=".",
    group_marks=",",
    ordinal_marks="st|nd|rd|th",
    point="point",
    dot="point",
    minus="minus",
    plus="plus",
    to="to",
    percent="percent",
    degrees=Noun("degree", "degrees"),
    number_sign="number",
    and_sign="and",
    operators={"+": "plus", "=": "equals", "×": "times", "*": "times", "÷": "divided by"},
    currencies=tables.by_name(
        {
            "$": Currency(Noun("dollar", "dollars"), _CENT),
            "USD": Currency(Noun("US dollar", "US dollars"), _CENT),
            "€ EUR": Currency(Noun("euro", "euros"), _CENT),
            "£ GBP": Currency(Noun("pound", "pounds"), Noun("penny", "pence")),
            "¥ JPY": Currency(tables.invariable("yen")),
            "CHF": Currency(Noun("Swiss franc", "Swiss francs"), Noun("centime", "centimes")),
            "₹": Currency(Noun("rupee", "rupees"), Noun("paisa", "paise")),
            "¢": Currency(_CENT),
        }
    ),
    units=_UNITS,
    scales=tables.by_name(
        {
            "thousand k K": tables.invariable("thousand"),
            "million M": tables.invariable("million"),
            "billion B bn": tables.invariable("billion"),
            "trillion T": tables.invariable("trillion"),
        }
    ),
    fractions=_fractions(),
    mixed=" and ",
    money="{major} and {minor} {coins}",
    singular_below=0.0,
    day_first=False,
    halves={form: form[0] + "m" for form in ("am", "pm", "a.m", "p.m", "a.m.", "p.m.")}
    | {form: form[0].lower() + "m" for form in ("AM", "PM", "A.M", "P.M", "A.M.", "P.M.")},
    months=tables.numbered(_MONTHS) | tables.numbered(_SHORT_MONTHS) | {"Sept": 9},
    abbreviations=_ABBREVIATIONS,
    pairs=True,
    dials=frozenset(("call", "Call", "dial", "Dial")),
    phones=r"(?:\+?1[ .-])?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}|\d{3}-\d{4}",
    kings=frozenset(
        "Henry Louis Elizabeth George Edward Charles William Richard James Philip Paul Pius Leo "
        "Benedict Alexander Nicholas Frederick Napoleon Ramses".split()
    ),
    chapters=frozenset("Chapter Part Act Volume Book Phase Section Type War Article".split()),
    the="the ",
    decade=decade,
)
