"""English codes of letters and digits, and short words of prescriptions: q8h, PT1H30M, BID."""

from __future__ import annotations

import re

from realtime_tts.text.languages import english_readings as read
from realtime_tts.text.languages import english_words as say
from realtime_tts.text.languages import tables
from realtime_tts.text.languages.rules import rule


def _every(match: re.Match[str]) -> str:
    least, most = match["one"], match["two"]
    if most:
        return f"every {say.cardinal(int(least))} to {say.cardinal(int(most))} hours"
    return f"every {say.cardinal(int(least))} hours" if int(least) > 1 else "every hour"


HEADS = ("q", "Q", "PT")
CODES = (
    rule(r"q(?P<one>[1-9]\d?)(?:[-–](?P<two>[1-9]\d?))?h(?:rs?)?\Z", _every),
    rule(
        r"Q(?P<one>[1-4])[-–]Q?(?P<two>[1-4])(?!\w)",
        lambda m: f"Q {say.cardinal(int(m['one']))} to Q {say.cardinal(int(m['two']))}",
    ),
    rule(r"PT(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?\Z", read.lasting),
)

_DOSE = re.compile(
    r"\d ?(?:mg|mcg|g|m[lL]|units?|IU|tab(?:let)?s?|cap(?:sule)?s?|pills?|puffs?|drops?)"
    r"(?: (?:PO|p\.o\.|po|by mouth))?\s\Z"
)
DOSED = {
    form: (_DOSE, words)
    for short, words in tables.entries(
        "bid twice a day|tid three times a day|qid four times a day|qd once a day|po by mouth"
    ).items()
    for form in (short, short.upper())
}
"""What these letters mean behind a dose; elsewhere they are words, such as bid."""
