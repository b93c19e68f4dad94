"""Finds which words were recognised wrongly, and when: a word error rate, placed in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tools.demo_voice.recognise import TimedWord
from tools.demo_voice.words import normalise


@dataclass(frozen=True, slots=True)
class PlacedWord:
    """A word of the text, or an inserted word (`index` None). `seconds`: the middle of the words
    recognised for it, or those of the word before if there are none. `errors`: 1 if it is wrong.
    """

    index: int | None
    seconds: float
    errors: int
    begin: float | None = None
    end: float | None = None


_Step = tuple[int, int, int]  # words of the text, words heard, errors
_WAYS: tuple[_Step, ...] = ((1, 1, 0), (1, 1, 1), (2, 1, 0), (1, 2, 0), (1, 0, 1), (0, 1, 1))


def place(text: str, heard: Sequence[TimedWord]) -> list[PlacedWord]:
    """Return the words of `text` and inserted words in order, with the fewest errors (Levenshtein).

    A compound may be written as one word or as two, as in `word_errors`.
    """
    wanted = normalise(text)
    found = [(word, each) for each in heard for word in normalise(each.word)]
    placed: list[PlacedWord] = []
    row = column = 0
    for more, many, errors in _cheapest(wanted, [word for word, _ in found]):
        times = [each for _, each in found[column : column + many]]
        before = placed[-1].seconds if placed else 0.0
        begin = times[0].begin if times else None
        end = times[-1].end if times else None
        seconds = (begin + end) / 2 if begin is not None and end is not None else before
        for index in range(row, row + more) if more else (None,):
            placed.append(PlacedWord(index, seconds, errors, begin, end))
        row, column = row + more, column + many
    return placed


def _cheapest(wanted: Sequence[str], found: Sequence[str]) -> list[_Step]:
    """Return the steps of the alignment with the fewest errors."""
    cost: dict[tuple[int, int], tuple[int, _Step | None]] = {(0, 0): (0, None)}
    for row in range(len(wanted) + 1):
        for column in range(len(found) + 1):
            ways = [
                (cost[row - more, column - many][0] + errors, (more, many, errors))
                for more, many, errors in _WAYS
                if more <= row and many <= column
                if errors or _same(wanted[row - more : row], found[column - many : column])
            ]
            if ways:
                cost[row, column] = min(ways, key=lambda way: way[0])
    steps: list[_Step] = []
    place = (len(wanted), len(found))
    while (step := cost[place][1]) is not None:
        steps.append(step)
        place = (place[0] - step[0], place[1] - step[1])
    return steps[::-1]


def _same(wanted: Sequence[str], found: Sequence[str]) -> bool:
    return "".join(wanted) == "".join(found)
