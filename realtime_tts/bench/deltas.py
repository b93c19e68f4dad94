"""Text the way a language model sends it: pieces, gaps between them, now and then a stall.

Pure: randomness is an argument, and nothing waits here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from random import Random

from realtime_tts.errors import ConfigError

TOKENS_PER_WORD = 1.3
"""Tokens per word of English text, roughly, in the tokenizers of large language models."""

_LONGEST_TOKEN = 7  # characters; a longer word is cut, as byte-pair tokenizers do
_WORD = re.compile(r"\s*\S+\s*\Z|\s*\S+|\s+\Z")  # whitespace before, at the end also after


class DeltaKind(StrEnum):
    """The pieces in which the text arrives: the whole text, words, or tokens."""

    WHOLE = "whole"
    WORDS = "words"
    TOKENS = "tokens"


@dataclass(frozen=True, slots=True)
class DeltaTiming:
    """How a language model's output arrives.

    `tokens_per_second`: mean speed. `jitter`: coefficient of variation of the gaps, 0 for an even
    stream. `stall_chance`: probability that a delta waits `stall_seconds` more.
    """

    kind: DeltaKind = DeltaKind.TOKENS
    tokens_per_second: float = 60.0
    jitter: float = 0.5
    stall_chance: float = 0.0
    stall_seconds: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.tokens_per_second < inf:
            raise ConfigError(f"tokens per second must be above 0, got {self.tokens_per_second}")
        if not (0 <= self.jitter < inf and 0 <= self.stall_seconds < inf):
            raise ConfigError("jitter and stall seconds are 0 or more")
        if not 0 <= self.stall_chance <= 1:
            raise ConfigError(f"stall chance is a probability, got {self.stall_chance}")


def split(text: str, kind: DeltaKind, random: Random) -> list[str]:
    """Return `text` cut into pieces, which joined are `text` again."""
    if kind is DeltaKind.WHOLE:
        return [text]
    words = _WORD.findall(text)
    if kind is DeltaKind.WORDS:
        return words
    return [piece for word in words for piece in _tokens(word, random)]


def schedule(text: str, timing: DeltaTiming, random: Random) -> list[tuple[float, str]]:
    """Return pairs of (seconds to wait, text delta); the first delta does not wait."""
    deltas = split(text, timing.kind, random)
    tokens = TOKENS_PER_WORD if timing.kind is DeltaKind.WORDS else 1.0
    gap = tokens / timing.tokens_per_second
    return [
        (0.0 if number == 0 else _gap(gap, timing, random), delta)
        for number, delta in enumerate(deltas)
    ]


def _tokens(word: str, random: Random) -> Iterator[str]:
    """Yield pieces of one word, with its leading space, as a byte-pair tokenizer would cut it."""
    while len(word) > _LONGEST_TOKEN:
        cut = random.randint(3, _LONGEST_TOKEN)
        yield word[:cut]
        word = word[cut:]
    yield word


def _gap(mean: float, timing: DeltaTiming, random: Random) -> float:
    seconds = mean
    if timing.jitter > 0:
        # A gamma distribution keeps the mean and has the wanted coefficient of variation.
        shape = 1.0 / timing.jitter**2
        seconds = random.gammavariate(shape, mean / shape)
    if timing.stall_chance > 0 and random.random() < timing.stall_chance:
        seconds += timing.stall_seconds
    return seconds
