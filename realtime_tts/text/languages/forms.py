"""Rules for numbers of a fixed form that several languages read alike: the times of machines, the
months of cards, aircraft."""

from __future__ import annotations

import re
from collections.abc import Callable

from realtime_tts.text.languages.language import Moment, Rule
from realtime_tts.text.languages.rules import dated, rule

_Words = Callable[[int], str]


def moments(
    date: Moment,
    time: Moment,
    words: _Words,
    signs: dict[str, str],
    comma: str = ", ",
    cue: str = "",
) -> Rule:
    """Make a rule for the times of machines: 2024-03-05T14:30:00+01:00.

    `signs`: the words for + and -, with the spaces around them, behind UTC; `comma`: what is
    between the date and the time; `cue`: a pattern for the text before it, if any.
    """

    day_of = dated(date)

    def said(match: re.Match[str]) -> str | None:
        day, hour = day_of(match), int(match["hour"])
        if day is None or hour > 24:
            return None
        second = int(match["second"] or 0) or None
        at = time(hour, int(match["minute"]), second, "")
        zone = ""
        if match["sign"]:
            part = f" {words(int(match['part']))}" if int(match["part"]) else ""
            zone = f" UTC{signs['+' if match['sign'] == '+' else '-']}"
            zone += words(int(match["ahead"])) + part
        return day + comma + at + zone

    return rule(
        r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)T(?P<hour>\d\d):(?P<minute>[0-5]\d)"
        r"(?::(?P<second>[0-5]\d)(?:\.\d+)?)?(?:(?P<sign>[-−+])(?P<ahead>\d\d):?(?P<part>\d\d))?"
        r"(?!\d|\.\d)",
        said,
        cue,
    )


def expiries(say: Callable[[int, int], str], cue: str) -> Rule:
    """Make a rule for the month until which something is valid, 08/27, behind `cue`.

    `say(month, year)`: its words.
    """
    return rule(
        r"(?P<month>0[1-9]|1[0-2])/(?P<year>[2-9]\d)(?![\d/])",
        lambda match: say(int(match["month"]), 2000 + int(match["year"])),
        cue,
    )


def aircraft(words: _Words, space: str = " ") -> Rule:
    """Make a rule for the numbers of aircraft, which are no ranges: 737-800."""
    return rule(
        r"(?P<one>7\d7)-(?P<two>[1-9]00)(?![\w-]|[.,]\d| ?[%‰€$])",
        lambda match: words(int(match["one"])) + space + words(int(match["two"])),
    )


def scales(words: _Words, link: str) -> Rule:
    """Make a rule for scales, whose second number has groups: 1:25.000."""
    return rule(
        r"1:(?P<n>\d{1,3}(?:[. \u00a0\u202f]\d{3})+)(?!\w)",
        lambda match: words(1) + link + words(int(re.sub(r"\D", "", match["n"]))),
    )


def short_dates(say: Moment) -> Rule:
    """Make a rule for dates whose year has two digits, the day first: 3/5/26."""

    def said(day: int, month: int, year: int | None, before: str) -> str:
        assert year is not None, "the pattern has one"
        return say(day, month, year + (2000 if year < 70 else 1900), before)

    return rule(r"(?P<day>\d{1,2})/(?P<month>\d{1,2})/(?P<year>\d\d)(?![\d/])", dated(said))
