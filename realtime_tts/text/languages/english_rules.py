"""Rules for English numbers that are read by what they are: an address, a score, a height.

Each rule is a pattern for what begins with a number and, where the number alone does not tell, one
for the words before it. The first rule that has words for what it finds is used, before the rules
that all languages share (`reading.py`).
"""

from __future__ import annotations

import re

from realtime_tts.text.languages import english_cues as cues
from realtime_tts.text.languages import english_words as say
from realtime_tts.text.languages import tables
from realtime_tts.text.languages.rules import ROMAN, roman_value, rule

_LENGTHS = {"ft": "feet", "in": "inches", "yd": "yards"}
_LENGTHS |= {"m": "meters", "cm": "centimeters", "mm": "millimeters"}
_AIRCRAFT = r"7[0-8]7"
_HYPHENED = tables.entries(
    "oz ounce|lb pound|ft foot|in inch|yd yard|mi mile|gal gallon|qt quart|pt pint|mm millimeter"
    "|cm centimeter|m meter|km kilometer|mg milligram|g gram|kg kilogram|ml milliliter"
    "|mL milliliter|L liter|sec second|min minute|hr hour|wk week|mo month|yr year"
)
"""Units behind a number and a hyphen: a 12-oz steak."""


def _date(match: re.Match[str]) -> str | None:
    year = match.groupdict().get("year")
    month, day = int(match["month"]), int(match["day"])
    if month > 12 >= day:
        month, day = day, month
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    if year and len(year) == 2:
        year = ("20" if int(year) < 70 else "19") + year
    return say.date(day, month, int(year) if year else None, "")


def _date_range(match: re.Match[str]) -> str | None:
    """Read 10/31-11/2, but not 1/2-3/4."""
    days = [tuple(map(int, match[name].split("/"))) for name in ("first", "second")]
    if all(month < day and day in (2, 3, 4, 5, 6, 8, 16, 32) for month, day in days):
        return None
    if days[0] >= days[1] or not all(0 < month <= 12 and 0 < day <= 31 for month, day in days):
        return None
    (one, first), (two, second) = days
    year = int(match["year"]) if match["year"] else None
    return f"{say.date(first, one, None, '')} to {say.date(second, two, year, '')}"


def _timestamp(match: re.Match[str]) -> str | None:
    date = _date(match)
    second = int(match["second"] or 0)
    time = say.time(int(match["hour"]), int(match["minute"]), second or None, "")
    return f"{date}, {time}" if date else None


def _days(match: re.Match[str]) -> str | None:
    month = say.MONTHS[match["month"]]
    first = say.date(int(match["one"]), month, None, "")
    year = f", {say.pairs(match['year'])}" if match["year"] else ""
    return f"{first} to {say.ordinal(int(match['two']))}{year}"


def _address(match: re.Match[str]) -> str | None:
    parts = match["host"].split(".")
    if any(int(part) > 255 for part in parts):
        return None
    port = f" port {say.pairs(match['port'])}" if match["port"] else ""
    return " dot ".join(map(say.pairs, parts)) + port


def _lasting(match: re.Match[str]) -> str:
    names = {"h": "hour", "m": "minute", "s": "second"}
    found = re.findall(r"(\d+) ?([hms])", match.group())
    parts = [(int(number), names[unit]) for number, unit in found]
    return " ".join(f"{say.cardinal(n)} {unit}{'' if n == 1 else 's'}" for n, unit in parts)


def _of(match: re.Match[str]) -> str | None:
    """Read a rating, a date, a fraction or a ratio: 8/10, 9/25, 7/16, 120/80."""
    above, below = match["above"], int(match["below"])
    if (
        "." in above
        or (below in (10, 100) and above != "1")
        or (int(above) == below and below <= 12)
        or (below in (20, 25, 30, 40, 50) and 12 < int(above) < below)
    ):
        return f"{say.decimal(above)} out of {say.cardinal(below)}" if below else None
    first = int(above)
    if first == below:
        return f"{say.cardinal(first)}-{say.cardinal(below)}"
    if first <= 12 < below <= 31 and below != 16 and first > 1:
        return say.date(below, first, None, "")
    if first < below <= 64 and (first, below) not in say.FRACTIONS and first:
        part = say.ordinal(below)
        return f"{say.cardinal(first)} {part}{'s' if first > 1 else ''}"
    if first > below:
        return f"{say.pairs(above)} over {say.cardinal(below)}"
    return None


def _score(match: re.Match[str]) -> str | None:
    first, second = int(match["one"]), int(match["two"])
    if first == second:
        return f"{say.cardinal(first)}-{say.cardinal(second)}"
    return f"{say.cardinal(first)} to {say.cardinal(second)}" if first > second else None


def _ratio(match: re.Match[str]) -> str | None:
    """Read 3:1 and 60:40, and minutes of a length or a run, 25:30; times are read elsewhere."""
    one, two = match.group().replace(",", "").split(":")
    if len(two) == 2 and int(one) < 100 and int(two) < 60 and int(one) + int(two) != 100:
        minutes = f"{say.cardinal(int(one))} "
        return minutes + (say.clock(int(two)) if int(two) else "minutes") if int(one) > 24 else None
    return f"{say.decimal(one)} to {say.decimal(two)}"


def _years(match: re.Match[str]) -> str | None:
    first, second = match["one"], match["two"]
    if int(second) != (int(first[2:]) + 1) % 100 and match["mark"] == "/":
        return None
    if int(second) <= int(first[2:]):
        return None
    return f"{say.pairs(first)} to {say.pairs(second)}"


def _by(match: re.Match[str]) -> str:
    numbers = re.findall(r"\d+(?:\.\d+)?", match["n"])
    digits = all(map(str.isdecimal, numbers)) and any(len(n) > 2 for n in numbers)
    number = say.pairs if digits and len(numbers) == 2 else say.decimal
    unit = f" {_LENGTHS[match['unit']]}" if match["unit"] else ""
    return " by ".join(map(number, numbers)) + unit


def _scientific(match: re.Match[str]) -> str:
    power = say.cardinal(int(match["power"]))
    minus = "" if match["sign"] == "+" else "minus "
    return f"{say.decimal(match['n'])} times ten to the power of {minus}{power}"


def _inches(match: re.Match[str]) -> str:
    return f"{say.decimal(match['n'])} inch" + ("" if match["n"] == "1" else "es")


def _part(match: re.Match[str]) -> str | None:
    return say.FRACTIONS.get((int(match["above"]), int(match["below"])))


def _parts_of_inches(match: re.Match[str]) -> str | None:
    part = _part(match)
    if part and match["whole"]:
        part = f"{say.cardinal(int(match['whole']))} and {part.replace('one', 'a', 1)}"
    return part and f"{part} inch"


def _groups(match: re.Match[str]) -> str:
    return ", ".join(map(say.spell, re.findall(r"\d+", match.group())))


RULES = (
    rule(
        r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)T(?P<hour>\d\d):(?P<minute>\d\d)"
        r"(?::(?P<second>\d\d))?(?![\d.])",
        _timestamp,
    ),
    rule(r"(?P<year>\d{4})(?P<mark>[/.])(?P<month>\d\d)(?P=mark)(?P<day>\d\d)(?!\w)", _date),
    rule(r"(?P<month>\d{1,2})-(?P<day>\d{1,2})-(?P<year>\d{4})(?![\w-])", _date),
    rule(r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d\d)(?![\w/])", _date),
    rule(r"(?P<one>[12]\d{3})(?P<mark>[-–/])(?P<two>\d\d)(?![\w/-])", _years),
    rule(
        r"(?P<month>0?[1-9]|1[0-2])/(?P<year>20\d\d)(?![\w/])",
        lambda m: f"{say.month(int(m['month']))} {say.pairs(m['year'])}",
    ),
    rule(
        r"(?P<first>\d{1,2}/\d{1,2})[-–](?P<second>\d{1,2}/\d{1,2})(?:/(?P<year>\d{4}))?(?![\w/])",
        _date_range,
    ),
    rule(
        r"(?P<above>\d)/(?P<below>\d\d?)[-–](?=\d/\d)",
        lambda m: f"{part} to" if (part := _part(m)) else None,
    ),
    rule(r"9/11(?![\w/])", lambda m: "nine eleven"),
    rule(rf"(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}})(?![\w/]){cues.PART}", _date, cues.MONTH),
    rule(
        rf"(?P<one>\d{{1,2}})[-–](?P<two>\d{{1,2}}) (?P<month>{'|'.join(say.MONTHS)})(?!\w)"
        r"(?P<year>(?!))?",
        _days,
    ),
    rule(r"1-?(?P<n>8\d\d)-(?=[A-Z])", lambda m: f"one, {say.phone_part(m['n'])}, "),
    rule(
        rf"(?P<a>{_AIRCRAFT})-(?P<b>\d{{1,3}})(?![\w-])",
        lambda m: f"{say.pairs(m['a'])} {say.pairs(m['b'])}",
    ),
    rule(rf"(?P<a>{_AIRCRAFT})(?!\w)", lambda m: say.pairs(m["a"]), r"(?i:boeing|the|an?)\s\Z"),
    rule(r"\d{4}(?: \d{4}){3}(?!\w)", _groups),
    rule(
        r"(?!\d{4}-[01]\d-\d\d(?!\d)|(?:1-)?\d{3}-\d{3}-\d{4}(?!\d))\d+(?:-\d+){2,}(?![\w-])",
        _groups,
    ),
    rule(
        r"(?P<host>\d{1,3}(?:\.\d{1,3}){3})(?!\.?\w)(?::(?P<port>\d{2,5}))?",
        _address,
    ),
    rule(r"\d{5}(?:-\d{4})?(?![\w,]*\d)", _groups, cues.STATE),
    rule(
        r"\d{3,}-\d{3,}(?![\w.,%:/-]*[\d%])|\d{3} \d{3}(?!\w|[.,:/-]\w| \d)", _groups, cues.SPELLING
    ),
    rule(r"\d{3,}(?![\d.,%:/-]*[\d%])", lambda m: say.spell(m.group()), cues.SPELLING),
    rule(
        r"(?P<n>\d{1,2})s(?!\w)",
        lambda m: say.decade(int(m["n"])),
        r"\b[A-Za-z]+-|\b(?:two|three|four|these|those)\s",
    ),
    rule(
        r"(?P<a>\d{1,3})(?:st|nd|rd|th)[-–](?P<b>\d{1,3})(?:st|nd|rd|th)(?!\w)",
        lambda m: f"{say.ordinal(int(m['a']))} to {say.ordinal(int(m['b']))}",
    ),
    rule(
        r"(?!0\d{4} \d{3})\d{5,}(?![\d.,%:/-]*[\d%])",
        lambda m: say.spell(m.group()),
        r"\b(?i:order|claim|text)\s",
    ),
    rule(r"911(?![\w.,%-]*[\d%])", lambda m: "nine one one", r"(?<!Porsche )\Z"),
    rule(r"(?:40[13]|501)(?=\(?[bck])", lambda m: say.pairs(m.group())),
    rule(
        r"[45]0\d(?= (?:[Ee]rrors?|page|status|Unauthorized|Forbidden|Not|Bad|Service)(?!\w))",
        lambda m: say.pairs(m.group()),
    ),
    rule(r"0\d(?!\w)", lambda m: say.pairs(m.group()), r"(?:\A|\s)['’]"),
    rule(r"(?P<n>\d{3,4})(?=[pi](?!\w))", lambda m: say.pairs(m["n"])),
    rule(r"(?P<n>\d{1,4}) (?=(?:AD|BCE?|CE|A\.D|B\.C)(?!\w))", lambda m: say.pairs(m["n"]) + " "),
    rule(r"1\d{3}(?![\w,%–/-]|\.\d)", lambda m: say.pairs(m.group()), r"\b(?:[Ii]n|[Ss]ince)\s\Z"),
    rule(
        r"(?P<a>\d{3})-(?P<b>\d{3})(?![\w-])",
        lambda m: f"{say.pairs(m['a'])} to {say.pairs(m['b'])}",
        r"(?i:rooms)\s\Z",
    ),
    rule(r"\d{1,3}(?= [NW](?!\w))", lambda m: say.pairs(m.group()), cues.ROAD),
    rule(r"\d{3,4}(?![\d.,%:/-]*[\d%]|['’]?s)", lambda m: say.pairs(m.group()), cues.PAIRED),
    rule(
        r"(?P<n>\d+)\.(?P<part>0?\d\d)(?![\w]|\.\d)",
        lambda m: f"{say.pairs(m['n'])} point {say.pairs(m['part'])}",
        cues.RELEASES,
    ),
    rule(
        r"(?P<n>20\d\d)\.(?P<part>\d)(?!\w|\.\d)",
        lambda m: f"{say.pairs(m['n'])} point {say.cardinal(int(m['part']))}",
    ),
    rule(r"\d+h ?\d+m(?:in)?(?: ?\d+s)?(?!\w)|\d+m ?\d+s(?!\w)", _lasting),
    rule(
        r"(?P<one>[1-9]\d?)['’′](?P<two> ?\d{1,2}(?=[\"”″])|\d{1,2}(?!\w))[\"”″]?",
        lambda m: f"{say.cardinal(int(m['one']))} foot {say.cardinal(int(m['two']))}",
    ),
    rule(
        r"(?P<n>\d+)['’′](?= (?:long|wide|tall|high|deep|thick)(?!\w))",
        lambda m: f"{say.decimal(m['n'])} feet",
    ),
    rule(
        rf"(?P<n>\d+(?:\.\d+)?)-(?P<unit>{'|'.join(_HYPHENED)})(?![\w-])",
        lambda m: f"{say.decimal(m['n'])}-{_HYPHENED[m['unit']]}",
    ),
    rule(r"(?P<n>\d+(?:\.\d+)?)×(?![\w(])", lambda m: f"{say.decimal(m['n'])} times"),
    rule(
        r"(?P<n>\d+(?:\.\d+)?)[\"”″]",
        lambda m: f"{say.decimal(m['n'])} inch",
        r"\A[^\"]*\b(?i:an?|another)\s\Z",
    ),
    rule(r"(?P<n>\d+(?:\.\d+)?)[\"”″]", _inches, cues.UNQUOTED),
    rule(
        r"(?:(?P<whole>\d+)[ -])?(?P<above>\d)/(?P<below>\d{1,2})[\"”″]",
        _parts_of_inches,
        cues.UNQUOTED,
    ),
    rule(
        r"(?P<above>\d)/(?P<below>\d\d?)(?:rd|th)s?(?!\w)",
        _part,
    ),
    rule(
        r"(?P<a>\d+)(?P<unit>['’′]|ft) ?[x×] ?(?P<b>\d+)(?P=unit)(?!\w)",
        lambda m: f"{say.decimal(m['a'])} by {say.decimal(m['b'])} feet",
    ),
    rule(r"(?P<n>\d+(?:\.\d+)?) in(?= (?:long|wide|tall|high|deep|thick)(?!\w))", _inches),
    rule(
        r"(?P<n>\d+(?:\.\d+)?(?: ?[x×] ?\d+(?:\.\d+)?)+)(?!\.?\w|[⁻⁰¹²³⁴⁵⁶⁷⁸⁹^])"
        r"(?: ?(?P<unit>ft|cm|mm|m|in|yd)(?!\w))?",
        _by,
    ),
    rule(r"(?P<above>\d+(?:\.\d+)?)/(?P<below>\d{1,3})(?![\w/]|\.\d)(?<!24/7)", _of),
    rule(r"24-7(?![\w-])", lambda m: "twenty-four seven", unless=cues.SCORED),
    rule(
        r"(?P<one>\d{1,3})-(?P<two>\d{1,3})(?![\w%/-]|[.:]\d| ?[ap]\.?m)", _score, r"(?<![A-Za-z]-)"
    ),
    rule(
        r"(?P<above>\d\.\d+)/(?P<below>[45]\.0)(?!\w)",
        lambda m: f"{say.decimal(m['above'])} out of {say.decimal(m['below'])}",
    ),
    rule(
        r"\d{1,3}:\d(?![\d:])|\d+:(?:\d{1,3}(?:,\d{3})+|\d+)(?![\d:])",
        _ratio,
    ),
    rule(r"(?P<n>\d+(?:\.\d+)?)[eE](?P<sign>[-−+])(?P<power>\d{1,3})(?![\w-])", _scientific),
    rule(r"(?!3M)(?P<n>\d+(?:\.\d+)?)M(?!\w)", lambda m: f"{say.decimal(m['n'])} million"),
    rule(
        r"(?P<n>\d+(?:\.\d+)?)(?:bn|(?<=\.\d)B|(?<=\.\d\d)B)(?!\w)",
        lambda m: f"{say.decimal(m['n'])} billion",
    ),
    rule(
        r"(?P<n>\d\d+)[kK](?!\w)",
        lambda m: f"{say.decimal(m['n'])} thousand",
        r"(?<!\b[Aa] )(?<![A-Za-z\d]-)\Z",
    ),
    rule(
        r"(?P<n>\d{3,4})(?=[A-FHPR-UX-Z](?!\w))",
        lambda m: say.pairs(m["n"]),
        r"\b(?:at|[Uu]nit)\s\Z",
    ),
    rule(r"\d+(?= N\.? [A-Z]| W\. \d| [NW] \d+(?:st|nd|rd|th))", lambda m: say.pairs(m.group())),
    rule(
        r"(?P<n>\d+):(?P<two>\d+)(?!:)",
        lambda m: f"{say.decimal(m['n'])} to {say.decimal(m['two'])}",
        r"\bratio of\s\Z",
    ),
    rule(r"\d{1,3}(?: 000)+(?!\w)", lambda m: say.cardinal(int(m.group().replace(" ", "")))),
)
"""The rules, the most exact patterns first."""

BEHIND = re.compile(r"\d/\d{1,2}|[45]0\d|\d+ [NW]")
"""Text from a number on behind which the rules look at another word."""

NUMERALS = (rule(rf"{ROMAN}(?!\w)", lambda m: say.cardinal(roman_value(m["roman"])), r"\bWar\s"),)
"""Roman numerals of wars: one is read whatever follows it, unlike Part I."""
