"""English."""

from __future__ import annotations

from realtime_tts.text.languages.language import Abbreviation, Currency, Kind, Language, Noun

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "  twenty thirty forty fifty sixty seventy eighty ninety".split(" ")
_POWERS = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand"))
_ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
MONTH_NAMES = (
    "January February March April May June July August September October November December"
).split()
_SHORT_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def cardinal(n: int) -> str:
    if n < 20:
        return _SMALL[n]
    if n < 100:
        tens, rest = divmod(n, 10)
        return _TENS[tens] + (f"-{_SMALL[rest]}" if rest else "")
    if n < 1000:
        hundreds, rest = divmod(n, 100)
        return f"{_SMALL[hundreds]} hundred" + (f" {cardinal(rest)}" if rest else "")
    power, name = next(pair for pair in _POWERS if n >= pair[0])
    many, rest = divmod(n, power)
    return f"{cardinal(many)} {name}" + (f" {cardinal(rest)}" if rest else "")


def ordinal(n: int, mark: str = "") -> str:
    words = cardinal(n)
    cut = max(words.rfind(" "), words.rfind("-")) + 1
    head, last = words[:cut], words[cut:]
    if last in _ORDINALS:
        return head + _ORDINALS[last]
    return head + (last[:-1] + "ieth" if last.endswith("y") else last + "th")


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
    words = f"{MONTH_NAMES[month - 1]} {ordinal(day)}"
    return words if in_year is None else f"{words}, {year_of(in_year)}"


def year_of(n: int) -> str:
    return year(n) if 1100 <= n < 2100 else cardinal(n)


def _fractions() -> dict[tuple[int, int], str]:
    words = {(1, 2): "one half"}
    for below in range(3, 11):
        part = "quarter" if below == 4 else ordinal(below)
        for above in range(1, below):
            words[above, below] = f"{cardinal(above)} {part}{'s' if above > 1 else ''}"
    words[1, 16], words[3, 16] = "one sixteenth", "three sixteenths"
    words[1, 100], words[1, 1000] = "one hundredth", "one thousandth"
    return words


def _abbreviations() -> dict[str, Abbreviation]:
    table = {}
    for kind, pairs in (
        (
            Kind.TITLE,
            "Rev Reverend|Gen General|Capt Captain"
            "|Col Colonel|Lt Lieutenant|Sgt Sergeant|Sen Senator|Gov Governor|Hon Honorable"
            "|Mt Mount|Ft Fort",
        ),
        (
            Kind.PHRASE,
            "Mr Mister|Mrs Missus|Ms Miz|Messrs Messieurs|Prof Professor"
            "|vs versus|e.g for example|i.e that is"
            "|approx approximately|cf compare"
            "|E.g For example|I.e That is|Approx Approximately|dept department|Dept Department",
        ),
        (
            Kind.LAST,
            "etc et cetera|Jr Junior|Sr Senior|Inc Incorporated|Ltd Limited|Corp Corporation"
            "|Co Company|Ave Avenue|Blvd Boulevard|Rd Road|Hwy Highway|Apt Apartment"
            "|a.k.a also known as",
        ),
        (
            Kind.NUMBER,
            "No number|no number|Nos numbers|nos numbers|Vol volume|vol volume|Ch chapter"
            "|ch chapter|pp pages|Fig figure|fig figure|Sec section|Art article",
        ),
    ):
        for pair in pairs.split("|"):
            short, _, words = pair.partition(" ")
            table[short] = Abbreviation(words, kind)
    table["St"] = Abbreviation("Saint", Kind.PLACE, "Street")
    table["Dr"] = Abbreviation("Doctor", Kind.PLACE, "Drive")
    return table


def _units() -> dict[str, Noun]:
    plain = (
        "km kilometer|cm centimeter|mm millimeter|m meter|nm nanometer|mi mile|yd yard|kg kilogram"
        "|g gram|mg milligram|lb pound|oz ounce|l liter|L liter|ml milliliter|mL milliliter"
        "|ms millisecond|s second|sec second|min minute|h hour|hr hour|kWh kilowatt hour"
        "|kW kilowatt|MW megawatt|GW gigawatt|W watt|V volt|mV millivolt|kB kilobyte|KB kilobyte"
        "|MB megabyte|GB gigabyte|TB terabyte|Mbps megabit per second|Gbps gigabit per second"
        "|sq ft square foot|dB decibel|mAh milliamp hour|kcal kilocalorie|kPa kilopascal|N newton"
        "|J joule|kJ kilojoule|gal gallon|qt quart|ha hectare|μm micrometer|µm micrometer"
    )
    units = {}
    for pair in plain.split("|"):
        short, _, name = pair.partition(" ")
        first, per, rest = name.partition(" per ")
        units[short] = Noun(name, f"{first}s{per}{rest}")
    for short, name in (("Hz", "hertz"), ("kHz", "kilohertz"), ("MHz", "megahertz")):
        units[short] = Noun(name, name)
    units.pop("sq")
    units |= {
        "GHz": Noun("gigahertz", "gigahertz"),
        "ft": Noun("foot", "feet"),
        "lbs": Noun("pound", "pounds"),
        "hrs": Noun("hour", "hours"),
        "mins": Noun("minute", "minutes"),
        "secs": Noun("second", "seconds"),
        "mph": Noun("mile per hour", "miles per hour"),
        "mpg": Noun("mile per gallon", "miles per gallon"),
        "km/h": Noun("kilometer per hour", "kilometers per hour"),
        "kph": Noun("kilometer per hour", "kilometers per hour"),
        "m/s": Noun("meter per second", "meters per second"),
        "m²": Noun("square meter", "square meters"),
        "km²": Noun("square kilometer", "square kilometers"),
        "m³": Noun("cubic meter", "cubic meters"),
        "°C": Noun("degree Celsius", "degrees Celsius"),
        "°F": Noun("degree Fahrenheit", "degrees Fahrenheit"),
    }
    return units


_CENT = Noun("cent", "cents")
_SCALES = {name: Noun(name, name) for name in ("thousand", "million", "billion", "trillion")}

ENGLISH = Language(
    name="english",
    codes=("en",),
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
    currencies={
        "$": Currency(Noun("dollar", "dollars"), _CENT),
        "USD": Currency(Noun("US dollar", "US dollars"), _CENT),
        "€": Currency(Noun("euro", "euros"), _CENT),
        "EUR": Currency(Noun("euro", "euros"), _CENT),
        "£": Currency(Noun("pound", "pounds"), Noun("penny", "pence")),
        "GBP": Currency(Noun("pound", "pounds"), Noun("penny", "pence")),
        "¥": Currency(Noun("yen", "yen")),
        "JPY": Currency(Noun("yen", "yen")),
        "CHF": Currency(Noun("Swiss franc", "Swiss francs"), Noun("centime", "centimes")),
        "₹": Currency(Noun("rupee", "rupees"), Noun("paisa", "paise")),
        "¢": Currency(_CENT),
    },
    units=_units(),
    scales=_SCALES
    | {"k": _SCALES["thousand"], "K": _SCALES["thousand"], "M": _SCALES["million"]}
    | {"B": _SCALES["billion"], "bn": _SCALES["billion"], "T": _SCALES["trillion"]},
    fractions=_fractions(),
    mixed=" and ",
    money="{major} and {minor} {coins}",
    singular_below=0.0,
    day_first=False,
    halves={form: form[0] + "m" for form in ("am", "pm", "a.m", "p.m", "a.m.", "p.m.")}
    | {form: form[0].lower() + "m" for form in ("AM", "PM", "A.M", "P.M", "A.M.", "P.M.")},
    months={name: index + 1 for index, name in enumerate(MONTH_NAMES)}
    | {name: index + 1 for index, name in enumerate(_SHORT_MONTHS)}
    | {"Sept": 9},
    abbreviations=_abbreviations(),
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
