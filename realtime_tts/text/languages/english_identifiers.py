"""Rules for English numbers that name something: accounts, codes and addresses of computers."""

from __future__ import annotations

import re

from realtime_tts.text.languages import english_cues as cues
from realtime_tts.text.languages import english_readings as read
from realtime_tts.text.languages import english_words as say
from realtime_tts.text.languages.rules import rule


def _spelled(match: re.Match[str]) -> str:
    return say.spell(match.group())


IDENTIFIERS = (
    rule(r"(?!(?:(?:19|20)\d\d ?){3})\d{3,4}(?: \d{4}){2,}(?: \d\d)?(?!\w)", read.groups),
    rule(
        r"(?!\d{4}-[01]\d-\d\d(?!\d)|(?:1-)?\d{3}-\d{3}-\d{4}(?!\d))\d+(?:-\d+){2,}(?![\w-])",
        read.groups,
    ),
    rule(
        r"(?P<host>\d{1,3}(?:\.\d{1,3}){3})(?!\.?\w)(?::(?P<port>\d{2,5})|/(?P<bits>\d\d?))?",
        read.address,
    ),
    rule(r"\d{5}(?:-\d{4})?(?![\w,]*\d)", read.groups, cues.STATE),
    rule(
        r"\d{2,}-\d{3,}(?![\w.,%:/-]*[\d%])|\d{3,4}(?: \d{3,4}){1,3}(?!\w|[.,:/-]\w| \d)",
        read.groups,
        cues.SPELLING,
    ),
    rule(r"\d{3,}(?![\d.,%:/-]*[\d%])", _spelled, cues.SPELLING),
    rule(
        r"(?!0\d{4} \d{3})\d{5,}(?![\d.,%:/-]*[\d%])",
        _spelled,
        r"\b(?i:order|claim|text|inv\.|P\.?O\.?)\s",
    ),
    rule(r"\d{5,}(?![\w.,%:/-]*[\w%])", _spelled, r"\b(?!ISO)[A-Z]{1,8}\d*-"),
    # An amount of nine digits has commas, or is round; a telephone number is read in its groups
    # elsewhere.
    rule(
        r"(?!1?[2-9]\d\d[2-9]\d{6}(?!\d)|\d+0{5}(?!\d))\d{9,}(?![\w%]|[.,:/-]\d)",
        _spelled,
    ),
    rule(r"[0-7]{3,4}(?!\w|[.,]\d)", _spelled, r"\b[Cc]hmod (?:-R )?"),
    rule(
        r"\d{3}(?![\d.,%:/-]*[\d%])",
        _spelled,
        r"\b(?:[Cc]all|[Dd]ial) \d{3} or\s",
    ),
    rule(r"911(?![\w.,%-]*[\d%])", lambda m: "nine one one", r"(?<!Porsche )\Z"),
)
"""The rules, the most exact patterns first."""
