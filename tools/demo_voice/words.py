"""Texts as words a recogniser can be compared with, and how many of them are wrong."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from random import Random

from realtime_tts.text.languages.english import ENGLISH
from realtime_tts.text.languages.english_words import ordinal_word

_SPELLINGS = {
    "mr": "mister",
    "mrs": "missus",
    "ms": "miss",
    "dr": "doctor",
    "ok": "okay",
    "percent": "per cent",
    "tv": "t v",
}
_SIGNS = {"%": " percent ", "&": " and ", "+": " plus ", "=": " equals ", "@": " at "}
_NUMBER = re.compile(r"(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(st|nd|rd|th)?\b")


@dataclass(frozen=True, slots=True)
class WordErrors:
    """Differences between what should be and what was heard, counted in words of the former."""

    words: int
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0
    heard: str = ""

    @property
    def errors(self) -> int:
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float:
        """Errors per word that should be there; may be more than 1. 0 for no words and errors."""
        if not self.words:
            return 0.0 if not self.errors else float("inf")
        return self.errors / self.words


def spell(number: int) -> str:
    """A cardinal number of up to twelve digits in words; a longer one digit by digit."""
    if number >= 10**12:
        return ENGLISH.digits(str(number))
    return ENGLISH.cardinal(number).replace("-", " ")


def _spell_match(match: re.Match[str]) -> str:
    whole, fraction, ordinal = match.groups()
    words = spell(int(whole.replace(",", ""))).split()
    if fraction:
        words += ["point", *ENGLISH.digits(fraction).split()]
    if ordinal:
        words[-1] = ordinal_word(words[-1])
    return f" {' '.join(words)} "


def normalise(text: str) -> list[str]:
    """Words in lower case without punctuation, apostrophes and accents, numbers in words.

    Apostrophes go, because nobody hears whether it was "its" or "it's".
    """
    text = unicodedata.normalize("NFKD", text).lower().replace("\u2019", "'")
    text = "".join(letter for letter in text if not unicodedata.combining(letter))
    text = reduce(lambda done, sign: done.replace(*sign), _SIGNS.items(), text)
    text = _NUMBER.sub(_spell_match, text).replace("'", "")
    words = re.findall("[a-z]+", text)
    return " ".join(_SPELLINGS.get(word, word) for word in words).split()


def word_errors(text: str, heard: str) -> WordErrors:
    """The fewest substitutions, deletions and insertions that make `text` into `heard`.

    A compound written as one word or as two ("backyard", "back yard") is no error.
    """
    wanted, found = normalise(text), normalise(heard)
    substitutions, deletions, insertions = _edits(wanted, found)
    return WordErrors(len(wanted), substitutions, deletions, insertions, " ".join(found))


_Edits = tuple[int, int, int]  # substitutions, deletions, insertions


def _edits(wanted: Sequence[str], found: Sequence[str]) -> _Edits:
    """Levenshtein's algorithm; of equally short ways, the one with the most substitutions."""
    best: list[list[_Edits]] = []
    for row in range(len(wanted) + 1):
        best.append([])
        for column in range(len(found) + 1):
            ways = _ways(best, wanted[:row], found[:column])
            best[row].append(min(ways, key=lambda way: (sum(way), -way[0]), default=(0, 0, 0)))
    return best[-1][-1]


def _ways(
    best: Sequence[Sequence[_Edits]], wanted: Sequence[str], found: Sequence[str]
) -> Iterator[_Edits]:
    """What it costs to come here, by the last word or two; `best` has all shorter ways."""
    row, column = len(wanted), len(found)
    if row and column:
        s, d, i = best[row - 1][column - 1]
        yield (s + (wanted[-1] != found[-1]), d, i)
    if row:
        s, d, i = best[row - 1][column]
        yield (s, d + 1, i)
    if column:
        s, d, i = best[row][column - 1]
        yield (s, d, i + 1)
    if row > 1 and column and wanted[-2] + wanted[-1] == found[-1]:
        yield best[row - 2][column - 1]
    if row and column > 1 and found[-2] + found[-1] == wanted[-1]:
        yield best[row - 1][column - 2]


def interval(results: Sequence[WordErrors]) -> tuple[float, float]:
    """95 % bounds of the pooled rate, by drawing as many sentences again and again (bootstrap)."""
    if not results:
        return 0.0, 0.0
    random, draws = Random(1), 1000
    rates = sorted(pooled(random.choices(results, k=len(results))).rate for _ in range(draws))
    outside = round(0.025 * draws)
    return rates[outside], rates[-1 - outside]


def pooled(results: Iterable[WordErrors]) -> WordErrors:
    """All sentences as one: errors and words added up."""
    results = list(results)
    return WordErrors(
        sum(result.words for result in results),
        sum(result.substitutions for result in results),
        sum(result.deletions for result in results),
        sum(result.insertions for result in results),
    )
