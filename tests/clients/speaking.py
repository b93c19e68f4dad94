"""A text in deltas, as a language model sends it, and what its speech is like."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

RATE = 24_000
TEXT = "The museum is open until six."
LONG = " ".join([TEXT] * 8)


def deltas(text: str) -> Iterator[str]:
    """Pieces of one to seven characters, as a language model cuts them: through words."""
    sizes = itertools.cycle((3, 1, 7, 2, 5))
    at = 0
    while at < len(text):
        size = next(sizes)
        yield text[at : at + size]
        at += size


def lasts(seconds: float, text: str = TEXT) -> bool:
    """Whether the text can be spoken in so long."""
    return 0.03 * len(text) < seconds < 0.2 * len(text)


def is_speech(pcm: bytes, text: str = TEXT, rate: int = RATE) -> bool:
    """Whether these samples of 16 bits can be it."""
    return lasts(len(pcm) / 2 / rate, text) and any(pcm)
