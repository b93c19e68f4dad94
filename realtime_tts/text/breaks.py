"""Reads `<break time="300ms"/>`, a pause of a stated length, also when it is cut between deltas."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_BREAK_SECONDS = 10.0
"""The most that all pauses of a turn may take together; what goes beyond is left out."""
SHORTEST_BREAK_SECONDS = 0.01
"""A shorter one is no pause, and must not part the speech."""

_TAG = re.compile(
    r"<break\s+time\s*=\s*(?P<quote>[\"'])\s*(?P<number>\d{1,6}(?:\.\d{0,6})?|\.\d{1,6})\s*"
    r"(?P<unit>ms|s)\s*(?P=quote)\s*(?:/>|>\s*</break\s*>)",
    re.IGNORECASE,
)
_START = "<break"
_OPEN = re.compile(r"<break\s[^<>]*(?:>\s*(?:<(?:/(?:b(?:r(?:e(?:a(?:k\s*)?)?)?)?)?)?)?)?\Z", re.I)
_MAX_TAG = 80


@dataclass(frozen=True, slots=True)
class Break:
    """A pause in the speech."""

    seconds: float


def read_break(text: str, at: int, ended: bool) -> tuple[int, Break] | None:
    """The tag at `at` and its length; 0 if there is none; None if more text is needed.

    A tag that is not of this form is text like any other.
    """
    none = 0, Break(0.0)
    window = text[at : at + _MAX_TAG]
    match = _TAG.match(window)
    if match:
        seconds = float(match["number"]) / (1000 if match["unit"].lower() == "ms" else 1)
        return match.end(), Break(seconds)
    if ended or len(window) == _MAX_TAG:
        return none
    if len(window) <= len(_START):
        return None if _START.startswith(window.lower()) else none
    return None if _OPEN.match(window) else none
