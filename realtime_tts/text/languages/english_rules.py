"""Rules for English numbers that are read by what they are: an address, a score, a height.

Each rule is a pattern for what begins with a number and, where the number alone does not tell, one
for the words before it. The first rule that has words for what it finds is used, before the rules
that all languages share (`reading.py`).
"""

from __future__ import annotations

import re

from realtime_tts.text.languages import english_cues as cues
from realtime_tts.text.languages import english_readings as read
from realtime_tts.text.languages import english_words as say
from realtime_tts.text.languages import forms, tables
from realtime_tts.text.languages.english_identifiers import IDENTIFIERS
from realtime_tts.text.languages.english_lengths import LENGTHS
from realtime_tts.text.languages.rules import ROMAN, dated, linked, roman_value, rule, vehicles

_AIRCRAFT = r"7[0-8]7"
_HYPHENED = tables.entries(
    "oz ounce|lb pound|ft foot|in inch|yd yard|mi mile|gal gallon|qt quart|pt point|mm millimeter"
    "|cm centimeter|m meter|km kilometer|mg milligram|g gram|kg kilogram|ml milliliter"
    "|mL milliliter|L liter|mph mile-per-hour|GB gigabyte|TB terabyte|MB megabyte|W watt"
    "|kW kilowatt|kWh kilowatt-hour|hp horsepower|Hz hertz|MP megapixel"
    "|sec second|min minute|hr hour|wk week|mo month|yr year"
)
"""Units behind a number and a hyphen: a 12-oz steak."""
_OFTEN = r"(?=/(?:day|week|wk|month|mo|year|yr)(?!\w)| (?:daily|weekly|an?|per|each|every)(?!\w))"
_DOSES = tables.entries("mg milligram|mcg microgram|g gram|IU international_unit|units unit")
_TIME = r"(?P<hour>1?\d)(?::(?P<minute>[0-5]\d))?(?P<half>[ap])(?!\.m)"
_plainly = linked(say.cardinal, " ")
_SOME = r"(?P<one>\d{1,3})/(?P<two>\d{1,3})"


def _paired(match: re.Match[str]) -> str:
    return say.pairs(match.group())


RULES = (
    rule(
        r"€ ?(?P<n>\d{1,3}(?:[. ]\d{3})*),(?P<cents>\d\d)(?![\d.,]*\d)"
        r"|(?P<whole>\d{1,3}(?:[. ]\d{3})*),(?P<part>\d\d) ?(?:€|EUR(?!\w))",
        read.euros,
    ),
    rule(
        r"(?P<n>\d{4,5}):(?P<year>(?:19|20)\d\d)(?!\d)",
        lambda m: f"{say.decimal(m['n'])}, {say.pairs(m['year'])}",
        r"\bISO(?:/[A-Z]+)? ",
    ),
    forms.moments(say.date, say.time, say.cardinal, {"+": " plus ", "-": " minus "}),
    rule(r"(?P<n>0?\d|1\d):00(?!\w)", lambda m: say.cardinal(int(m["n"])), r"(?:UTC|GMT) ?[-−+]"),
    rule(r"(?P<year>\d{4})(?P<mark>[/.])(?P<month>\d\d)(?P=mark)(?P<day>\d\d)(?!\w)", read.date),
    rule(
        r"(?=0|\d\d\.0)(?P<day>[0-3]\d)\.(?P<month>[01]\d)\.(?P<year>20\d\d)(?![\w./-]\w)",
        dated(say.date),
    ),
    rule(r"(?P<month>\d{1,2})-(?P<day>\d{1,2})-(?P<year>\d{4})(?![\w-])", read.date),
    rule(
        rf"(?P<day>[0-3]?\d)-(?P<month>{'|'.join(say.MONTHS)})-(?P<year>(?:19|20)\d\d)(?![\w-])",
        lambda m: say.date(int(m["day"]), say.MONTHS[m["month"]], int(m["year"]), ""),
    ),
    rule(
        r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d\d(?:\d\d)?)"
        r" ?[-–](?= ?\d{1,2}/\d{1,2}/\d)",
        lambda m: f"{date} to" if (date := read.date(m)) else None,
    ),
    rule(r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d\d)(?![\w/])", read.date),
    rule(
        r"(?P<minute>\d{1,2}):(?P<second>[0-5]\d)/(?P<unit>km|mi)(?!\w)",
        lambda m: f"{say.pairs(m['minute'])} {say.pairs(m['second'])} per {_HYPHENED[m['unit']]}",
    ),
    rule(
        r"(?P<n>[2-9]\d)ers(?!\w)",
        lambda m: say.cardinal(int(m["n"])).removesuffix("e") + "ers",
    ),
    rule(r"(?P<one>[12]\d{3})(?P<mark>[-–/])(?P<two>\d\d)(?![\w/-])", read.years),
    rule(
        r"(?P<month>0?[1-9]|1[0-2])/(?P<year>20\d\d)(?![\w/])",
        lambda m: f"{say.month(int(m['month']))} {say.pairs(m['year'])}",
    ),
    rule(
        r"(?P<first>\d{1,2}/\d{1,2})[-–](?P<second>\d{1,2}/\d{1,2})(?:/(?P<year>\d{4}))?(?![\w/])",
        read.date_range,
    ),
    rule(
        r"(?P<above>\d)/(?P<below>\d\d?)[-–](?=\d/\d)",
        lambda m: f"{part} to" if (part := read.part(m)) else None,
    ),
    rule(
        r"(?P<hour>\d{1,2}):(?P<minute>[0-5]\d):(?P<second>[0-5]\d)(?=\.\d)",
        lambda m: " ".join(map(say.pairs, m.groups())),
    ),
    rule(
        r"(?P<one>[2-9]|12)/(?P<two>[248]|16)(?= (?:time|meter|signature|rhythm|waltz|beat)(?!\w))",
        _plainly,
    ),
    rule(
        r"(?P<one>[2-9]|12)/(?P<two>[248]|16)(?![\w/])",
        _plainly,
        r"\b[Tt]ime signature(?: is| of|:)?\s",
    ),
    rule(
        r"(?P<one>\d[\d,]*)/(?P<two>\d{1,3}(?:,\d{3})+|\d{1,2}000|1600|2400)(?![\w/]|[.,]\d)",
        read.of_many,
    ),
    rule(
        rf"(?P<n>\d+(?:\.\d+)?) ?(?P<unit>{'|'.join(_DOSES)})/(?P<two>\d+(?:\.\d+)?) ?m[lL](?!\w)",
        lambda m: (
            f"{say.decimal(m['n'])} {_DOSES[m['unit']]}s per {say.decimal(m['two'])} milliliters"
        ),
    ),
    rule(
        r"(?P<n>\d+(?:\.\d+)?) ?(?P<unit>oz|lb)"
        r"(?=\)? (?:can|jar|package|bag|bottle|box|container)(?:s|es)?(?!\w))",
        lambda m: f"{say.decimal(m['n'])} {_HYPHENED[m['unit']]}",
    ),
    rule(
        r"(?P<one>\d+(?:\.\d+)?)/(?P<two>\d+(?:\.\d+)?) ?"
        r"(?P<unit>mg|mcg|Mbps|Gbps|mpg|oz|[GMT]B|min)(?!\w)",
        read.both,
    ),
    rule(r"(?P<one>[357]|10)/(?P<two>[16])(?= ARMs?(?!\w))", _plainly),
    rule(r"24/7/365(?![\w/])", lambda m: "twenty-four seven three sixty-five"),
    rule(r"9/11(?![\w/])", lambda m: "nine eleven"),
    rule(rf"{_SOME}(?![\w/])", read.of_all, cues.STEP),
    rule(
        r"(?P<one>[0-5])/(?P<two>5)(?= stars(?!\w))",
        lambda m: f"{say.cardinal(int(m['one']))} out of five",
    ),
    rule(
        rf"{_SOME}(?= (?:tasks|items|steps|questions|people|students|tests|complete|done|correct"
        r"|passed|passing)(?!\w))",
        read.of_all,
    ),
    rule(
        r"(?P<one>\d{1,3}):(?P<two>\d{1,3})(?:[-–](?P<until>\d{1,3}))?(?![\d:])",
        read.verse,
        cues.BOOK,
    ),
    rule(r"(?P<n>\d+(?:\.\d+)?)° ?(?P<side>[NSEW])(?!\w)", read.bearing),
    rule(
        r"(?P<n>\d{1,3})° ?(?P<minutes>\d{1,2})['’′](?: ?(?P<seconds>\d{1,2}(?:\.\d+)?)[\"”″])?"
        r" ?(?P<side>[NSEW])(?!\w)",
        read.bearing,
    ),
    rule(
        r"(?P<n>\d+) ?(?P<unit>[GTM]B|k?W)(?= (?:model|version|one|option|variant|plan|drive|card"
        r"|disk|SSD|phone|laptop|tablet|file|limit|chargers?|charging|bulbs?|battery)(?!\w))",
        lambda m: f"{say.cardinal(int(m['n']))} {_HYPHENED[m['unit']]}",
    ),
    rule(r"(?P<n>\d{4,}) bps(?!\w)", lambda m: f"{say.cardinal(int(m['n']))} bits per second"),
    rule(r"(?P<n>\d{1,2})\.x(?!\w)", lambda m: f"{say.cardinal(int(m['n']))} point x"),
    *vehicles(lambda n: say.pairs(str(n))),
    rule(
        r"(?:[3-9]\d|\d{3})(?:/\d{1,3}){2}(?![\w/])",
        lambda m: ", ".join(say.cardinal(int(n)) for n in m.group().split("/")),
    ),
    rule(rf"{_TIME}(?![\w-])", read.short_time),
    rule(rf"{_TIME}(?P<to>[-–](?=\d{{1,2}}(?::[0-5]\d)?[ap](?!\w)))", read.short_time),
    rule(rf"{_TIME}(?!\w)", lambda m: read.short_time(m, at_end=True), r"\d[ap][-–]"),
    rule(
        r"(?P<one>20)/(?P<two>(?!20)[1-9]\d0?)(?![\w/])", _plainly, r"\b[Vv]ision\b[\w ,:/]{0,30}"
    ),
    rule(
        r"(?P<above>\d)/(?P<below>\d\d?)-in(?:\.|(?!\w))",
        lambda m: f"{part}-inch" if (part := read.part(m)) else None,
    ),
    rule(
        rf"(?:(?P<from>\d{{1,2}})[-–])?(?P<n>\d{{1,2}})x{_OFTEN}",
        lambda m: (
            (f"{say.cardinal(int(m['from']))} to " if m["from"] else "")
            + f"{say.cardinal(int(m['n']))} times"
        ),
    ),
    *LENGTHS,
    rule(r"(?P<above>\d)/(?P<below>\d\d?)(?:rd|th)s?(?!\w)", read.part),
    rule(r"\d{3}(?=[A-D] [A-Z][a-z])", _paired),
    rule(r"10(?:40|9[589])(?=-[A-Z]| [Ff]orms?(?!\w))", _paired),
    rule(r"10(?:40|9[589])(?!\w|[.,]\d)", _paired, r"\b(?:[Aa]n?|[Tt]he|[Yy]our|[Ff]orms?)\s"),
    rule(
        r"(?P<month>0[1-9]|1[0-2])/(?P<year>2[4-9]|[34]\d)(?![\w/])",
        lambda m: f"{say.month(int(m['month']))} {say.pairs('20' + m['year'])}",
        cues.CARD_EXPIRES,
    ),
    rule(rf"(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}})(?![\w/]){cues.PART}", read.date, cues.MONTH),
    rule(
        r"(?P<month>\d{1,2})/(?P<day>\d{1,2})"
        r"(?= (?:meeting|appointment|call|flight|deadline|session|game|class|visit)(?!\w))",
        read.date,
    ),
    rule(
        rf"(?P<one>\d{{1,2}})[-–](?P<two>\d{{1,2}}) (?P<month>{'|'.join(say.MONTHS)})(?!\w)"
        r"(?P<year>(?!))?",
        read.days,
    ),
    rule(r"1-?(?P<n>8\d\d)-(?=[A-Z])", lambda m: f"one, {say.phone_part(m['n'])}, "),
    rule(
        rf"(?P<a>{_AIRCRAFT})-(?P<b>\d{{1,3}})(?![\w-])",
        lambda m: f"{say.pairs(m['a'])} {say.pairs(m['b'])}",
    ),
    rule(rf"{_AIRCRAFT}(?!\w)", _paired, r"(?i:boeing|the|an?)\s\Z"),
    rule(
        r"(?P<won>\d{1,3})-(?P<lost>\d{1,3})-(?P<tied>\d{1,3})(?![\w-])",
        lambda m: ", ".join(say.cardinal(int(n)) for n in m.groups()),
        cues.RECORD,
    ),
    rule(
        r"(?P<n>\d{1,2})s(?!\w)",
        lambda m: say.decade(int(m["n"])),
        r"\b[A-Za-z]+-|\b(?:two|three|four|these|those)\s",
    ),
    rule(
        r"(?P<a>\d{1,3})(?:st|nd|rd|th)[-–](?P<b>\d{1,3})(?:st|nd|rd|th)(?!\w)",
        lambda m: f"{say.ordinal(int(m['a']))} to {say.ordinal(int(m['b']))}",
    ),
    *IDENTIFIERS,
    rule(r"(?:40[13]|501)(?=\(?[bck])", _paired),
    rule(
        r"[45]0\d(?= (?:[Ee]rrors?|page|status|Unauthorized|Forbidden|Not|Bad|Service)(?!\w))",
        _paired,
    ),
    rule(r"0\d(?!\w)", _paired, r"(?:\A|\s)['’]"),
    rule(r"\d{3,4}(?=[pi](?!\w))", _paired),
    rule(r"(?P<n>\d{1,4}) (?=(?:AD|BCE?|CE|A\.D|B\.C)(?!\w))", lambda m: say.pairs(m["n"]) + " "),
    rule(r"1\d{3}(?![\w,%–/-]|\.\d)", _paired, r"\b(?:[Ii]n|[Ss]ince)\s\Z"),
    rule(
        r"(?P<a>\d{3})-(?P<b>\d{3})(?![\w-])",
        lambda m: f"{say.pairs(m['a'])} to {say.pairs(m['b'])}",
        r"(?i:rooms)\s\Z",
    ),
    rule(r"\d{1,3}(?= [NW](?!\w))", _paired, cues.ROAD),
    rule(r"\d{1,3}(?=[A-Z](?!\w))", _paired, cues.PLACED),
    rule(
        r"\d{3,4}(?![\d.,%:/-]*[\d%]|['’]?s| ?(?:lbs?|k?g|m[gls]|mL|[ck]?m|oz|ft|mi|mph|bpm|min"
        r"|k?cal|[kMG]?Hz|[kMGT]B|[kM]?W|hp|psi|px|fps|mAh|dB|people|points|pts)(?!\w))",
        _paired,
        cues.PAIRED,
    ),
    rule(
        r"(?P<n>\d+)\.(?P<part>0?\d\d)(?![\w]|\.\d)",
        lambda m: f"{say.pairs(m['n'])} point {say.pairs(m['part'])}",
        cues.RELEASES,
    ),
    rule(
        r"(?P<n>20\d\d)\.(?P<part>\d)(?!\w|\.\d)",
        lambda m: f"{say.pairs(m['n'])} point {say.cardinal(int(m['part']))}",
    ),
    rule(
        r"(?P<sign>[-−+])?(?:(?:\d+d ?)?\d+ ?h ?\d+ ?m(?:in)?(?: ?\d+s)?|\d+d ?\d+h"
        r"|\d+h[0-5]\d|\d+m ?\d+s)(?!\w)",
        read.lasting,
    ),
    rule(r"\d{1,3}(?:_\d{3})+(?![\d_])", lambda m: say.cardinal(int(m.group()))),
    rule(
        rf"(?P<n>\d+(?:\.\d+)?)-(?P<unit>{'|'.join(_HYPHENED)})(?:(?![\w-])|(?=-old))",
        lambda m: f"{say.decimal(m['n'])}-{_HYPHENED[m['unit']]}",
    ),
    rule(r"(?P<n>\d+(?:\.\d+)?)×(?![\w(])", lambda m: f"{say.decimal(m['n'])} times"),
    rule(r"(?P<above>\d+(?:\.\d+)?)/(?P<below>\d{1,3})(?![\w/]|\.\d)(?<!24/7)", read.of),
    rule(r"24-7(?![\w-])", lambda m: "twenty-four seven", unless=cues.SCORED),
    rule(
        r"(?P<one>\d{1,3})-(?P<two>\d{1,3})(?![\w%/-]|[.:]\d| ?[ap]\.?m)",
        read.score,
        r"(?<![A-Za-z]-)",
    ),
    rule(
        r"(?P<above>\d\.\d+)/(?P<below>[45]\.0)(?!\w)",
        lambda m: f"{say.decimal(m['above'])} out of {say.decimal(m['below'])}",
    ),
    rule(
        r"\d{1,3}:\d(?![\d:])|\d+:(?:\d{1,3}(?:,\d{3})+|\d+)(?![\d:])",
        read.ratio,
    ),
    rule(r"(?P<n>\d+(?:\.\d+)?)[eE](?P<sign>[-−+])(?P<power>\d{1,3})(?![\w-])", read.scientific),
    rule(r"(?P<n>\d+\.\d+)e(?P<sign>)(?P<power>\d{1,3})(?![\w-])", read.scientific),
    rule(
        r"(?P<one>\d+(?:\.\d+)?)(?P<scale>[kKM])[-–](?P<two>\d+(?:\.\d+)?)(?P=scale)(?!\w)",
        read.scaled,
    ),
    rule(
        r"(?:(?P<one>\d+(?:\.\d+)?)[-–])?(?P<two>\d+(?:\.\d+)?)(?P<scale>[kKMB])" + cues.COUNTED,
        read.scaled,
    ),
    rule(
        r"(?P<one>\d+(?:\.\d+)?)[-–](?P<two>\d+(?:\.\d+)?)(?P<scale>[kM])(?!\w)",
        read.scaled,
    ),
    rule(r"(?!3M)(?P<n>\d+(?:\.\d+)?)M(?!\w)", lambda m: f"{say.decimal(m['n'])} million"),
    rule(
        r"(?P<n>\d+(?:\.\d+)?)(?:bn|(?<=\.\d)B|(?<=\.\d\d)B)(?!\w)",
        lambda m: f"{say.decimal(m['n'])} billion",
    ),
    rule(
        r"(?P<n>\d\d+|\d\.\d)[kK](?P<mi> mi)?(?!\w| (?:run|race|runner|walk|training)(?!\w))",
        lambda m: f"{say.decimal(m['n'])} thousand" + (" miles" if m["mi"] else ""),
        r"(?<!\b[Aa] )(?<![A-Za-z\d]-)\Z",
    ),
    rule(r"\d{3,4}(?=[A-FHPR-UX-Z](?!\w))", _paired, r"\b(?:at|[Uu]nit)\s\Z"),
    rule(r"\d+(?= N\.? [A-Z]| W\. \d| [NW] \d+(?:st|nd|rd|th))", _paired),
    rule(
        r"(?P<n>\d+):(?P<two>\d+)(?!:)",
        lambda m: f"{say.decimal(m['n'])} to {say.decimal(m['two'])}",
        cues.RATIO,
    ),
    rule(
        r"(?P<n>1):(?P<two>\d{1,3})(?= (?:scale|ratio|dilution|mixture|mix|odds|model)(?!\w))",
        lambda m: f"one to {say.decimal(m['two'])}",
    ),
    rule(r"\d{1,3}(?: 000)+(?!\w)", lambda m: say.cardinal(int(m.group().replace(" ", "")))),
)
"""The rules, the most exact patterns first."""

BEHIND = re.compile(
    r"\d{1,3}/\d{1,3}|10(?:40|9[589])|(?:\d{1,2}[-–])?\d{1,2}x|1:\d{1,3}|[\d.–-]+[kKMB]\+?"
    r"|[\d.]+ ?(?:oz|lb)\)?|[\d.]+[\"”″](?: ?[x×] ?\d+[\"”″])?"
    r"|\d+ ?(?:[GTM]B|k?W)|[\d.]+°|\d+ h(?: \d+)?|[45]0\d|\d+ [NW]|[\d.–-]+ in(?: of)?"
)
"""Text from a number on behind which the rules look at another word."""

NUMERALS = (rule(rf"{ROMAN}(?!\w)", lambda m: say.cardinal(roman_value(m["roman"])), r"\bWar\s"),)
"""Roman numerals of wars: one is read whatever follows it, unlike Part I."""
