"""Rules for English lengths in feet and inches, and for lengths by lengths: 6'2", 9" x 13"."""

from __future__ import annotations

from realtime_tts.text.languages import english_cues as cues
from realtime_tts.text.languages import english_readings as read
from realtime_tts.text.languages import english_words as say
from realtime_tts.text.languages.rules import UNQUOTED, rule

_INCHES = r"(?P<n>\d+(?:\.\d+)?)[\"”″]"
_WIDE = (
    r"(?:round|square|TVs?|monitors?|screens?|displays?|laptops?|tablets?|pizzas?|wheels?|rims?|tires?|pans?"
    r"|skillets?|pots?|pipes?|bikes?|heels?|model|version|gap|hem)(?!\w)"
)
"""What a length in inches is a property of: a pair of 20" wheels."""

LENGTHS = (
    rule(
        r"(?P<n>(?!0x)\d+) ?[x×] ?(?=\d+(?:\.\d+)? ?(?:k?g|m[glL]|[lL]|oz|lbs?|[GTM]B)(?!\w))",
        lambda m: f"{say.decimal(m['n'])} times",
    ),
    rule(
        r"(?P<a>[2468])x(?P<b>[468]|1[02])s(?!\w)",
        lambda m: f"{say.decimal(m['a'])} by {say.decade(int(m['b']))}",
    ),
    rule(
        r"(?P<one>\d+)[-–](?P<n>\d+)[\"”″]",
        lambda m: f"{say.decimal(m['one'])} to {read.inches(m)}",
        UNQUOTED,
    ),
    rule(
        r"(?P<n>\d{1,3},\d{3})['’′](?!\w)",
        lambda m: f"{say.decimal(m['n'].replace(',', ''))} feet",
        unless=r"(?<!\w)['‘][^'’]*",
    ),
    rule(
        r"(?P<one>[1-9]\d?)['’′](?P<two> ?\d{1,2}(?=[\"”″])|\d{1,2}(?!\w))[\"”″]?",
        lambda m: f"{say.cardinal(int(m['one']))} foot {say.cardinal(int(m['two']))}",
    ),
    rule(
        r"(?P<one>[1-9]\d?)['’′] ?(?=\d{1,2}[- ]\d/\d{1,2}[\"”″])",
        lambda m: f"{say.cardinal(int(m['one']))} foot ",
    ),
    rule(
        r"(?P<one>\d) ?ft\.? (?P<n>1[01]|\d) ?in(?:\.(?= [a-z]))?"
        r"(?!\w| (?:the|an?|my|your|total)(?!\w))",
        lambda m: f"{say.cardinal(int(m['one']))} feet {read.inches(m)}",
    ),
    rule(
        r"(?P<n>\d+)['’′](?= (?:long|wide|tall|high|deep|thick)(?!\w))",
        lambda m: f"{say.decimal(m['n'])} feet",
    ),
    rule(
        rf"(?P<a>\d+)[\"”″] ?[x×] ?{_INCHES}(?=(?P<wide> {_WIDE})?)",
        lambda m: f"{say.decimal(m['a'])} by {read.inch(m)}" + ("" if m["wide"] else "es"),
        UNQUOTED,
    ),
    rule(_INCHES, read.inch, cues.ADJECTIVE),
    rule(rf"{_INCHES}(?= {_WIDE})", read.inch, UNQUOTED),
    rule(_INCHES, read.inches, UNQUOTED),
    rule(
        r"(?:(?P<whole>\d+)[ -])?(?P<above>\d)/(?P<below>\d{1,2})[\"”″]",
        read.parts_of_inches,
        UNQUOTED,
    ),
    rule(
        r"(?P<a>\d+)(?P<unit>['’′]|ft) ?[x×] ?(?P<b>\d+)(?P=unit)(?!\w)",
        lambda m: f"{say.decimal(m['a'])} by {say.decimal(m['b'])} feet",
    ),
    rule(
        r"(?:(?P<one>\d+)[-–])?(?P<n>\d+(?:\.\d+)?) in(?= (?:long|wide|tall|high|deep|thick"
        r"|of (?:new |fresh |heavy )?(?:snow|rain|ice|water))(?!\w))",
        lambda m: (f"{say.cardinal(int(m['one']))} to " if m["one"] else "") + read.inches(m),
    ),
    rule(r"(?P<n>\d+)['’′](?!\w)", lambda m: f"{say.decimal(m['n'])} feet", r"\d[\"”″] ?[x×] "),
    rule(
        r"(?P<n>(?!0x)\d+(?:\.\d+)?(?: ?[x×] ?\d+(?:\.\d+)?)+)"
        r"(?: ?(?P<unit>ft|cm|mm|m|in|yd|px)(?!\w)|(?!\.?\w|-\d|[⁻⁰¹²³⁴⁵⁶⁷⁸⁹^]))",
        read.by,
    ),
)
"""The rules, the most exact patterns first."""
