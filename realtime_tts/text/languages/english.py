"""English: its signs, units, abbreviations and customs."""

from __future__ import annotations

import re

from realtime_tts.text.languages import english_cues as cues
from realtime_tts.text.languages import english_words as words
from realtime_tts.text.languages import tables
from realtime_tts.text.languages.english_codes import CODES, DOSED, HEADS
from realtime_tts.text.languages.english_rules import BEHIND, NUMERALS, RULES
from realtime_tts.text.languages.language import Abbreviation, Currency, Kind, Language, Noun

_WEEKDAYS = tables.entries(
    "Mon Monday|Tue Tuesday|Tues Tuesday|Wed Wednesday|Thu Thursday|Thur Thursday|Thurs Thursday"
    "|Fri Friday|Sat Saturday|Sun Sunday"
)
_MONTH_NAMES = {
    short: name
    for name, n in words.MONTHS.items()
    for short, m in words.MONTHS.items()
    if m == n and len(short) <= 4 and len(name) > len(short)
}
_ABBREVIATIONS = (
    tables.abbreviations(
        {
            Kind.TITLE: "Rev Reverend|Gen General|Capt Captain|Col Colonel|Lt Lieutenant"
            "|Sgt Sergeant"
            "|Sen Senator|Gov Governor|Hon Honorable|Mt Mount|Ft Fort|Rep Representative|Maj Major"
            "|Pres President|Adm Admiral|Cpl Corporal|Pvt Private|Supt Superintendent"
            "|Cmdr Commander",
            Kind.PHRASE: "Mr Mister|Mrs Missus|Ms Miz|Messrs Messieurs|Prof Professor|vs versus"
            "|e.g for example|i.e that is|approx approximately|cf compare"
            "|govt government|mgmt management|mgr manager"
            "|asst assistant|avg average|misc miscellaneous"
            "|a.k.a also known as|ea each|qty quantity"
            "|tel telephone|incl including"
            "|excl excluding|p.a per annum|Attn Attention|vit vitamin",
            Kind.NAMES: "v versus",
            Kind.LAST: "etc et cetera|Jr Junior|Sr Senior|Inc Incorporated|Ltd Limited"
            "|Corp Corporation|Co Company|Ave Avenue|Blvd Boulevard|Rd Road|Hwy Highway|Ln Lane"
            "|Ct Court|Pkwy Parkway|Pl Place|Sq Square|dept department"
            "|appt appointment|Appt Appointment|acct account|Acct Account|pkg package"
            "|pkgs packages|qtr quarter|yr year|Dept Department|fl floor|mo month"
            "|b.i.d twice a day|t.i.d three times a day|q.i.d four times a day|p.o by mouth"
            "|q.d once a day"
            "|p.r.n as needed|Esq Esquire|sq._ft square foot"
            "|Mon Monday|Tue Tuesday|Tues Tuesday|Wed Wednesday"
            "|Thu Thursday"
            "|Thur Thursday|Thurs Thursday|Fri Friday|Sat Saturday",
            Kind.NUMBER: "No number|no number|Nos numbers|nos numbers|Vol volume|vol volume"
            "|Ch chapter"
            "|ch chapter|pp pages|p page|Fig figure|fig figure|Sec section|Art article"
            "|Apt Apartment"
            "|Eq equation|eq equation|Ref reference|ref reference|ca circa|Est Established"
            "|est established|Max Maximum|max maximum|Min Minimum|min minimum|Bldg Building"
            "|ext extension|Ext Extension|Ep Episode|Pt Part|Rm Room|Ste Suite"
            "|Pg page|pg page|Sun Sunday|Op Opus|Rte Route|rte route|Fl Floor|Sc Scene|Ver Version"
            "|ver version|para paragraph|Para Paragraph"
            "|Cat Category|cat category|Ca Circa|Rs rupees"
            "|UTC- UTC minus|UTC− UTC minus|GMT- GMT minus",
            Kind.SYMBOL: "MB/s megabytes per second|GB/s gigabytes per second"
            "|kB/s kilobytes per second|KB/s kilobytes per second|Mb/s megabits per second"
            "|Gb/s gigabits per second|km/h kilometers per hour|m/s meters per second"
            "|mg/dL milligrams per deciliter|mmHg millimeters of mercury"
            "|w/ with|w/o without|w/out without|c/o care of|n/a N A|N/A N A|y/n yes or no"
            "|sq_ft square foot"
            "|WWI World War One|WWII World War Two|WW1 World War One|WW2 World War Two"
            "|YoY year over year|QoQ quarter over quarter|M-F Monday to Friday"
            "|M–F Monday to Friday|PRN as needed|prn as needed"
            "|qHS at bedtime|QHS at bedtime|qhs at bedtime|qAM every morning|qam every morning"
            "|qPM every evening|qpm every evening"
            f"|Ave_Maria Ave Maria|{tables.ranges(_WEEKDAYS, 'to')}"
            f"|{'|'.join(f'{short} {short}' for short in DOSED)}",
            Kind.ZIP: "|".join(f"{short} {name}" for short, name in words.STATES.items()),
            Kind.YEAR: "c circa",
            Kind.COMPASS: "N North|S South|E East|W West",
        },
        bare="UTC- UTC− GMT- ext Rm Rs Rte Ste Apt Ave Blvd Hwy Ln Pkwy Rd Mr Mrs Jr Mt vs approx"
        " Mon Tue Tues Wed Thu Thur Thurs Fri N S E W",
    )
    | {
        "St": Abbreviation("Saint", Kind.PLACE, "Street", bare=True),
        "Dr": Abbreviation("Doctor", Kind.PLACE, "Drive", bare=True),
    }
    | {
        short: Abbreviation(name, Kind.LAST)
        for short, name in _MONTH_NAMES.items()
        if short not in ("Mar", "May")
    }
)


def _measure(name: str, gender: str) -> Noun:
    """Return a unit whose plural takes its s before "per": megabits per second."""
    first, per, rest = name.partition(" per ")
    return Noun(name, f"{first}s{per}{rest}", gender)


_UNITS = (
    tables.nouns(
        _measure,
        "km kilometer|m2 square meter|km2 square kilometer|cm2 square centimeter"
        "|cm² square centimeter|m3 cubic meter|cm centimeter|mm millimeter|m meter|nm nanometer"
        "|mi mile|nmi nautical mile|yd yard|kg kilogram"
        "|g gram|mg milligram|lb pound|oz ounce|l liter|L liter|ml milliliter|mL milliliter"
        "|ms millisecond|s second|sec second|min minute|h hour|hr hour|kWh kilowatt hour"
        "|kW kilowatt|MW megawatt|GW gigawatt|W watt|V volt|mV millivolt|kB kilobyte|KB kilobyte"
        "|MB megabyte|GB gigabyte|TB terabyte|Mbps megabit per second|Gbps gigabit per second"
        "|dB decibel|mAh milliamp hour|kcal kilocalorie|kPa kilopascal|N newton|J joule"
        "|kJ kilojoule|Nm newton meter|gal gallon|qt quart|qts quart|ha hectare|μm micrometer"
        "|µm micrometer"
        "|lbs pound|hrs hour|mins minute|secs second|mph mile per hour|mpg mile per gallon"
        "|km/h kilometer per hour|kph kilometer per hour|m/s meter per second"
        "|m² square meter|km² square kilometer|m³ cubic meter|mcg microgram|µg microgram"
        "|μg microgram"
        "|pt pint|tbsp tablespoon|Tbsp tablespoon|tsp teaspoon|ns nanosecond|µs microsecond"
        "|μs microsecond|wk week|wks week|mo month|mos month|yr year|yrs year|GWh gigawatt hour"
        "|MWh megawatt hour|bpm beat per minute|fps frame per second|KiB kibibyte|MiB mebibyte"
        "|GiB gibibyte|Gb gigabit|Mb megabit|kb kilobit|Kbps kilobit per second|req request"
        "|pts point|kms kilometer|kgs kilogram|MP megapixel|yds yard|cal calorie|bps basis point"
        "|hPa hectopascal|mbar millibar|pg picogram|ng nanogram|mmol millimole|mol mole"
        "|IU international unit|mIU milli-international unit"
        "|cm³ cubic centimeter|cm3 cubic centimeter|mm² square millimeter"
        "|px pixel|Ω ohm|kΩ kilohm|mA milliamp|µF microfarad|μF microfarad",
    )
    | tables.nouns(
        tables.invariable,
        "hp horsepower|Hz hertz|kHz kilohertz|MHz megahertz|GHz gigahertz|doz dozen|psi PSI"
        "|dz dozen|rpm RPM|dpi DPI|lx lux"
        "|ppm parts per million|ppb parts per billion",
    )
    | {
        "inHg": Noun("inch of mercury", "inches of mercury"),
        "ft": Noun("foot", "feet"),
        "in.": Noun("inch", "inches"),
        "fl oz": Noun("fluid ounce", "fluid ounces"),
        "fl. oz": Noun("fluid ounce", "fluid ounces"),
        "sq ft": Noun("square foot", "square feet"),
        "sq. ft": Noun("square foot", "square feet"),
        "y/o": Noun("year old", "years old"),
        "sqft": Noun("square foot", "square feet"),
        "lb-ft": Noun("pound-foot", "pound-feet"),
        "ft-lb": Noun("foot-pound", "foot-pounds"),
        "ft-lbs": Noun("foot-pound", "foot-pounds"),
        "ft²": Noun("square foot", "square feet"),
        "ft2": Noun("square foot", "square feet"),
        "sq mi": Noun("square mile", "square miles"),
        "cu ft": Noun("cubic foot", "cubic feet"),
        "℃": Noun("degree Celsius", "degrees Celsius"),
        "℉": Noun("degree Fahrenheit", "degrees Fahrenheit"),
        "°C": Noun("degree Celsius", "degrees Celsius"),
        "°F": Noun("degree Fahrenheit", "degrees Fahrenheit"),
    }
)
_CENT = Noun("cent", "cents")


def _dollar(of: str) -> Currency:
    return Currency(Noun(f"{of}dollar", f"{of}dollars"), _CENT)


_DAYS_AND_MONTHS = frozenset(_WEEKDAYS.values()) | frozenset(words.MONTHS)
_ZONES = (
    "EST EDT ET CST CDT CT MST MDT MT PST PDT PT GMT UTC BST CET CEST IST JST AEST "
    "Eastern Central Mountain Pacific"
).split()

ENGLISH = Language(
    name="english",
    cardinal=words.cardinal,
    count=lambda n, gender: words.cardinal(n),
    ordinal=words.ordinal,
    year=words.year,
    time=words.time,
    date=words.date,
    decimal_mark=".",
    group_marks=",",
    ordinal_marks="st|nd|rd|th|ST|ND|RD|TH",
    point="point",
    dot="point",
    minus="minus",
    plus="plus",
    plus_or_minus="plus or minus",
    to="to",
    percent="percent",
    degrees=Noun("degree", "degrees"),
    number_sign="number",
    and_sign="and",
    operators={"+": "plus", "=": "equals", "×": "times", "*": "times", "÷": "divided by"}
    | {"-": "minus", "−": "minus", "/": "divided by"},
    currencies=tables.by_name(
        {
            "$": _dollar(""),
            "USD US$": _dollar("US "),
            "CAD C$ CA$": _dollar("Canadian "),
            "AUD A$ AU$": _dollar("Australian "),
            "NZD NZ$": _dollar("New Zealand "),
            "HKD HK$": _dollar("Hong Kong "),
            "SGD S$": _dollar("Singapore "),
            "BRL R$": Currency(Noun("real", "reais"), Noun("centavo", "centavos")),
            "MXN MX$": Currency(Noun("Mexican peso", "Mexican pesos"), Noun("centavo", "centavos")),
            "€ EUR": Currency(Noun("euro", "euros"), _CENT),
            "£ GBP": Currency(Noun("pound", "pounds"), Noun("penny", "pence")),
            "¥ JPY": Currency(tables.invariable("yen")),
            "CNY RMB": Currency(tables.invariable("yuan")),
            "CHF": Currency(Noun("Swiss franc", "Swiss francs"), Noun("centime", "centimes")),
            "SEK": Currency(Noun("Swedish krona", "Swedish kronor")),
            "NOK": Currency(Noun("Norwegian krone", "Norwegian kroner")),
            "DKK": Currency(Noun("Danish krone", "Danish kroner")),
            "PLN": Currency(tables.invariable("zloty")),
            "₹ INR": Currency(Noun("rupee", "rupees"), Noun("paisa", "paise")),
            "₩ KRW": Currency(tables.invariable("won")),
            "₽ RUB": Currency(Noun("ruble", "rubles")),
            "₿ BTC": Currency(tables.invariable("bitcoin")),
            "¢": Currency(_CENT),
        }
    ),
    units=_UNITS,
    scales=tables.by_name(
        {
            "thousand k K": tables.invariable("thousand"),
            "million M MM m mn": tables.invariable("million"),
            "billion B b bn": tables.invariable("billion"),
            "trillion T tn": tables.invariable("trillion"),
            "lakh": tables.invariable("lakh"),
            "crore": tables.invariable("crore"),
        }
    ),
    fractions=words.FRACTIONS,
    mixed=" and ",
    money="{major} and {minor} {coins}",
    singular_below=0.0,
    day_first=False,
    halves={form: form[0] + "m" for form in ("am", "pm", "a.m", "p.m", "a.m.", "p.m.")}
    | {form: form[0].lower() + "m" for form in ("AM", "PM", "A.M", "P.M", "A.M.", "P.M.")},
    months=words.MONTHS,
    abbreviations=_ABBREVIATIONS,
    pairs=words.pairs,
    phone_part=words.phone_part,
    dials=frozenset("call Call dial Dial ext extension Extension ext.".split()),
    phones=r"(?:\+?1[ .-])?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}|\d{3}-\d{4}"
    r"|(?:\+?1)?[2-9]\d{2}[2-9]\d{6}"
    r"|(?:0\d{1,4}|\(0\d{1,4}\))[ -]\d{3,4}[ -]\d{3,4}|(?:0\d{2,4}|\(0\d{2,4}\))[ -]\d{6,7}"
    r"|\(\d\d\) ?9?\d{4}-\d{4}",
    kings=frozenset(
        "Henry Louis Elizabeth George Edward Charles William Richard James Philip Paul Pius Leo "
        "Benedict Alexander Nicholas Frederick Napoleon Ramses John Ferdinand Philippe "
        "Umberto Haakon".split()
    ),
    chapters=frozenset(
        "Chapter Part Act Volume Book Phase Section Type Article Scene Title Stage Level "
        "Tier Bowl Episode Appendix Apollo Fantasy Grade Category Module Annex Schedule".split()
    ),
    the="the ",
    decade=words.decade,
    decade_cue=cues.DECADE,
    rules=RULES,
    behind=BEHIND,
    numeral_rules=NUMERALS,
    codes=CODES,
    code_heads=HEADS,
    behind_text=DOSED,
    signs={
        "→": ",",
        "↑": "up",
        "↓": "down",
        "√": "square root of",
        "§": "section",
        "§§": "sections",
        "π": "pi",
        "∫": "integral of",
        "∑": "sum of",
        "∆": "delta",
        "∞": "infinity",
        "✓": "yes",
        "✗": "no",
        "♭": "flat",
        "♯": "sharp",
        "≈": "approximately",
    }
    | {"≤": "less than or equal to", "≥": "greater than or equal to", "≠": "not equal to"},
    comparisons={"<": "less than", ">": "greater than", "~": "about"},
    powers={"2": "squared", "3": "cubed", "": "to the power of"},
    per="per",
    divisors=tables.entries(
        "s second|sec second|min minute|h hour|hr hour|d day|day day|wk week|week week|mo month"
        "|month month|yr year|year year|night night|person person|user user|unit unit|item item"
        "|hour hour|minute minute|second second|seat seat|dL deciliter|dl deciliter"
        "|mL milliliter|ml milliliter"
        "|s² second squared|quarter quarter|bbl barrel|annum annum|capita capita"
    ),
    behind_money=tables.entries(
        "min minimum|max maximum|gal per gallon|lb per pound|hr per hour|oz per ounce"
    ),
    articles=frozenset("a an A An another Another".split()),
    places=frozenset("at to is near".split()),
    followers=frozenset(
        "in long wide tall high deep thick max AD BC BCE CE A.D B.C x - – 000".split()
    ),
    dotted_units=frozenset(
        (
            "ft in lb lbs oz hr hrs min mins sec secs yr yrs mo mos wk wks gal qt pt yd mi tsp tbsp"
        ).split()
    ),
    after_time=frozenset((*_ZONES, *"N S E W NE NW SE SW".split())) | _DAYS_AND_MONTHS,
    addresses={".": "dot", "@": "at", "_": "underscore", "-": "dash", "/": "slash", ":": "port"},
    sharp="sharp",
    by="by",
    keys={"*": "star", "#": "pound"},
    hashtag="hashtag",
    numbered=frozenset(
        "order confirmation account tracking phone case ticket invoice card flight claim "
        "reference reservation booking serial model policy".split()
    ),
    numerals=re.compile(r"(?:II|III|VI|VII|VIII|IX|XI|XII|XIII|XIV|XV|XVI)(?!\w)"),
    spans=_WEEKDAYS | _MONTH_NAMES,
    behind_day=frozenset(("closed", "Closed")),
    before_one=frozenset("Chapter Part Act Phase Type".split()),
    behind_one=frozenset(
        "is was of and in to on the covers has had or from for with by at".split()
    ),
    no_names=frozenset("and at but by for from in near of on or the to with".split()),
    before_street=cues.STREET,
)
