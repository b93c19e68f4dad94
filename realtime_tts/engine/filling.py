"""Text of full-text prompts that one program computes together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from realtime_tts.model.frame_step import MOST_PROMPT_ROWS


@dataclass(frozen=True, slots=True)
class Filling:
    """Text ids [n] that go to positions `start` and following of `slot`."""

    slot: int
    start: int
    ids: Sequence[int]


def packed(fillings: Sequence[Filling], most: int) -> Iterator[list[Filling]]:
    """Yield groups of at most `most` positions and `MOST_PROMPT_ROWS` prompts: as few groups as
    possible, of about the same size."""
    total = sum(len(filling.ids) for filling in fillings)
    usual = -(-total // max(1, -(-total // most)))
    part: list[Filling] = []
    count = 0
    for filling in fillings:
        full = count >= usual or count + len(filling.ids) > most
        if part and (full or len(part) == MOST_PROMPT_ROWS):
            yield part
            part, count = [], 0
        part.append(filling)
        count += len(filling.ids)
    if part:
        yield part


def prompt_numbers(
    fillings: Sequence[Filling], positions: int, rows: int, padding: int
) -> NDArray[np.int64]:
    """Return the inputs of a program of `positions` positions and `rows` rows, int64 [3 * rows + 1
    + 3 * positions], in the order of `PromptStep.inputs`. `padding`: the slot of unused rows."""
    count = len(fillings)
    slots, starts, lengths = np.array(
        [(each.slot, each.start, len(each.ids)) for each in fillings], dtype=np.int64
    ).T
    ends = lengths.cumsum()
    used = ends[-1]
    numbers = np.zeros(3 * rows + 1 + 3 * positions, dtype=np.int64)
    heads, text = numbers[: 3 * rows + 1], numbers[3 * rows + 1 :].reshape(3, positions)
    heads[:rows], heads[:count], heads[rows : rows + count] = padding, slots, starts
    heads[2 * rows + 1 :][:count], heads[2 * rows + 1 + count :] = ends, used
    text[0, :used], text[0, used:] = slots.repeat(lengths), padding
    text[1, :used] = np.arange(used) + (starts - ends + lengths).repeat(lengths)
    text[2, :used] = list(chain.from_iterable(each.ids for each in fillings))
    return numbers
