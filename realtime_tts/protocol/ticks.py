"""Times of words in the whole units that messages have, for all protocols."""

from __future__ import annotations

from math import floor


def ticks(seconds: float, per_second: int) -> int:
    """Return the time in whole ticks, rounded down: a word that ended behind the last sample would
    not count as heard when all was played. What is added is for the error of a sum."""
    return floor(seconds * per_second + 1e-3)
