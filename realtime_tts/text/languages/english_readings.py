"""What is said for what an English rule has found: a date, a score, an address."""

from __future__ import annotations

import re

from realtime_tts.text.languages import english_words as say
from realtime_tts.text.languages import tables
from realtime_tts.text.languages.rules import linked, spelled

_LENGTHS = {"ft": "feet", "in": "inches", "yd": "yards"}
_LENGTHS |= {"m": "meters", "cm": "centimeters", "mm": "millimeters", "px": "pixels"}
_MEASURES = tables.entries(
    "mg milligrams|mcg micrograms|oz ounces|MB megabytes|GB gigabytes|TB terabytes|min minutes"
    "|mpg miles per gallon|Mbps megabits per second|Gbps gigabits per second"
)
"""Units of two amounts with a slash between them."""


def date(match: re.Match[str]) -> str | None:
    year = match.groupdict().get("year")
    month, day = int(match["month"]), int(match["day"])
    if month > 12 >= day:
        month, day = day, month
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    if year and len(year) == 2:
        year = ("20" if int(year) < 70 else "19") + year
    return say.date(day, month, int(year) if year else None, "")


def scaled(match: re.Match[str]) -> str:
    """Read 10K-20K, 1-2M users and 5M users."""
    scale = {"M": "million", "B": "billion"}.get(match["scale"], "thousand")
    least = f"{say.decimal(match['one'])} to " if match["one"] else ""
    return f"{least}{say.decimal(match['two'])} {scale}"


def date_range(match: re.Match[str]) -> str | None:
    """Read 10/31-11/2, but not 1/2-3/4."""
    days = [tuple(map(int, match[name].split("/"))) for name in ("first", "second")]
    if all(month < day and day in (2, 3, 4, 5, 6, 8, 16, 32) for month, day in days):
        return None
    if days[0] >= days[1] or not all(0 < month <= 12 and 0 < day <= 31 for month, day in days):
        return None
    (one, first), (two, second) = days
    year = int(match["year"]) if match["year"] else None
    return f"{say.date(first, one, None, '')} to {say.date(second, two, year, '')}"


def short_time(match: re.Match[str], *, at_end: bool = False) -> str | None:
    """Read 6:42a, and 9a-5p, whose halves are read one by one; 9a alone may be a room."""
    link = " to" if match.groupdict().get("to") else ""
    if not (match["minute"] or link or at_end):
        return None
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    return say.time(hour, minute, None, f"{match['half']}m") + link


def days(match: re.Match[str]) -> str | None:
    month = say.MONTHS[match["month"]]
    first = say.date(int(match["one"]), month, None, "")
    year = f", {say.pairs(match['year'])}" if match["year"] else ""
    return f"{first} to {say.ordinal(int(match['two']))}{year}"


def address(match: re.Match[str]) -> str | None:
    parts = match["host"].split(".")
    if any(int(part) > 255 for part in parts):
        return None
    port = f" port {say.pairs(match['port'])}" if match["port"] else ""
    bits = f" slash {say.cardinal(int(match['bits']))}" if match["bits"] else ""
    return " dot ".join(map(say.pairs, parts)) + port + bits


def lasting(match: re.Match[str]) -> str:
    """Read 1h 45m, 3m20s and PT1H30M."""
    names = {"d": "day", "h": "hour", "m": "minute", "s": "second"}
    found = re.findall(r"(\d+) ?([dhms]|\Z)", match.group().lower())
    parts = [(int(number), names[unit or "m"]) for number, unit in found]
    sign = {"+": "plus ", None: ""}.get(match.groupdict().get("sign"), "minus ")
    return sign + " ".join(f"{say.cardinal(n)} {unit}{'' if n == 1 else 's'}" for n, unit in parts)


def of(match: re.Match[str]) -> str | None:
    """Read a rating, a date, a fraction or a ratio: 8/10, 9/25, 7/16, 120/80."""
    above, below = match["above"], int(match["below"])
    if (
        "." in above
        or (below in (10, 100) and above != "1")
        or (int(above) == below and below <= 12)
        or (12 < int(above) < below not in (16, 32, 64, 100 - int(above)))
    ):
        return f"{say.decimal(above)} out of {say.cardinal(below)}" if below else None
    first = int(above)
    if first == below and below > 12 and below not in (20, 50):
        return f"{say.cardinal(first)} out of {say.cardinal(below)}"
    if first == below:
        return f"{say.cardinal(first)}-{say.cardinal(below)}"
    if first <= 12 < below <= 31 and below != 16 and first > 1:
        return say.date(below, first, None, "")
    if first + below == 100:
        return f"{say.cardinal(first)} {say.cardinal(below)}"
    if not first:
        return f"zero out of {say.cardinal(below)}" if below else None
    if first < below <= 64 and (first, below) not in say.FRACTIONS and first:
        part = say.ordinal(below)
        return f"{say.cardinal(first)} {part}{'s' if first > 1 else ''}"
    if first > below:
        return f"{say.pairs(above)} over {say.cardinal(below)}"
    return (
        None
        if (first, below) in say.FRACTIONS
        else f"{say.cardinal(first)} over {say.cardinal(below)}"
    )


def both(match: re.Match[str]) -> str | None:
    """Read two amounts with one unit, unless they are a fraction of it: 5/325 mg, 300/20 Mbps."""
    one, two = match["one"], match["two"]
    if (one, two) in {(str(above), str(below)) for above, below in say.FRACTIONS}:
        return None
    link = "out of" if match["unit"] in ("GB", "MB", "TB", "min") else "over"
    return f"{say.decimal(one)} {link} {say.decimal(two)} {_MEASURES[match['unit']]}"


def of_many(match: re.Match[str]) -> str:
    """Read 7,500/10,000 steps, and a score of 1520/1600."""
    one, two = (
        say.decimal(number.replace(",", "")) if "," in number else say.pairs(number)
        for number in (match["one"], match["two"])
    )
    return f"{one} out of {two}"


def score(match: re.Match[str]) -> str | None:
    first, second = int(match["one"]), int(match["two"])
    if first == second:
        return f"{say.cardinal(first)}-{say.cardinal(second)}"
    return f"{say.cardinal(first)} to {say.cardinal(second)}" if first > second else None


def ratio(match: re.Match[str]) -> str | None:
    """Read 3:1 and 60:40, and minutes of a length or a run, 25:30; times are read elsewhere."""
    one, two = match.group().replace(",", "").split(":")
    if len(two) == 2 and int(one) < 100 and int(two) < 60 and int(one) + int(two) != 100:
        minutes = f"{say.cardinal(int(one))} "
        return minutes + (say.clock(int(two)) if int(two) else "minutes") if int(one) > 24 else None
    return f"{say.decimal(one)} to {say.decimal(two)}"


def verse(match: re.Match[str]) -> str:
    until = f" to {say.cardinal(int(match['until']))}" if match["until"] else ""
    return f"{say.cardinal(int(match['one']))} {say.cardinal(int(match['two']))}{until}"


of_all = linked(say.cardinal, " of ")


def bearing(match: re.Match[str]) -> str:
    names = {"N": "North", "S": "South", "E": "East", "W": "West"}
    finer = [
        f" {say.decimal(number)} {name}"
        for name in ("minutes", "seconds")
        if (number := match.groupdict().get(name))
    ]
    return f"{say.decimal(match['n'])} degrees{''.join(finer)} {names[match['side']]}"


def years(match: re.Match[str]) -> str | None:
    first, second = match["one"], match["two"]
    if int(second) != (int(first[2:]) + 1) % 100 and match["mark"] == "/":
        return None
    if int(second) <= int(first[2:]):
        return None
    return f"{say.pairs(first)} to {say.pairs(second)}"


def by(match: re.Match[str]) -> str:
    numbers = re.findall(r"\d+(?:\.\d+)?", match["n"])
    digits = all(map(str.isdecimal, numbers)) and any(len(n) > 2 for n in numbers)
    number = say.pairs if digits and len(numbers) == 2 else say.decimal
    unit = f" {_LENGTHS[match['unit']]}" if match["unit"] else ""
    return " by ".join(map(number, numbers)) + unit


def scientific(match: re.Match[str]) -> str:
    power = say.cardinal(int(match["power"]))
    minus = "minus " if match["sign"] in ("-", "−") else ""
    return f"{say.decimal(match['n'])} times ten to the power of {minus}{power}"


def inches(match: re.Match[str]) -> str:
    return f"{say.decimal(match['n'])} inch" + ("" if match["n"] == "1" else "es")


def inch(match: re.Match[str]) -> str:
    return f"{say.decimal(match['n'])} inch"


def part(match: re.Match[str]) -> str | None:
    return say.FRACTIONS.get((int(match["above"]), int(match["below"])))


def euros(match: re.Match[str]) -> str:
    """Read euros and cents as they are written in Europe: €1.234,56."""
    whole, cents = match["n"] or match["whole"], int(match["cents"] or match["part"])
    number = int(whole.replace(".", "").replace(" ", ""))
    words = f"{say.cardinal(number)} euro{'' if number == 1 else 's'}"
    coins = f"{say.cardinal(cents)} cent{'' if cents == 1 else 's'}"
    return (f"{words} and {coins}" if number else coins) if cents else words


def parts_of_inches(match: re.Match[str]) -> str | None:
    words = part(match)
    above, below = int(match["above"]), int(match["below"])
    if words is None and below in (16, 32, 64):
        words = f"{say.cardinal(above)} {say.ordinal(below)}{'s' if above > 1 else ''}"
    if words and match["whole"]:
        words = f"{say.cardinal(int(match['whole']))} and {words.replace('one', 'a', 1)}"
    return words and f"{words} inch"


groups = spelled(say.cardinal)
