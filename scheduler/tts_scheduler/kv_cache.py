"""KVCacheManager: which pages of the memory for keys and values belong to which slot.

The memory is cut into pages of a fixed number of positions. A slot's block table lists its pages in
the order of its positions. Page 0 is the engine's scratch page and is never assigned. This module
handles numbers only: the keys and values themselves are in the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tts_scheduler.plan import Reservation


class DoesNotFit(ValueError):
    """Raised for an utterance that needs more memory than the engine has, even if it is alone."""


@dataclass(frozen=True, slots=True)
class KVCacheSize:
    """Size of an engine's memory for keys and values: `pages` of `page_size` positions.

    One utterance takes at most `row_positions` of them and ends after `max_frames` frames at the
    latest. Raises ValueError for less than one page, and for rows that could not make a frame.
    """

    pages: int
    page_size: int
    row_positions: int
    max_frames: int

    def __post_init__(self) -> None:
        if min(self.pages, self.page_size, self.max_frames) < 1:
            raise ValueError(f"a KV cache has at least one page, position and frame, got {self}")
        if not self.max_frames < self.row_positions <= self.pages * self.page_size:
            raise ValueError(
                f"row_positions must be more than max_frames and at most all positions, got {self}"
            )

    def pages_for(self, positions: int) -> int:
        """Return the number of pages that `positions` of one slot take."""
        return -(-positions // self.page_size)

    def fits(self, prompt_positions: int) -> bool:
        """Return whether a prompt of `prompt_positions` leaves room for the longest speech."""
        return prompt_positions + self.max_frames <= self.row_positions

    def check(self, prompt_positions: int) -> None:
        """Raise DoesNotFit for a prompt, its text included, that leaves no room for speech."""
        if not self.fits(prompt_positions):
            raise DoesNotFit(
                f"voice, instructions and text take {prompt_positions} positions; with "
                f"{self.max_frames} frames of speech that is more than the {self.row_positions} "
                "positions there are for one turn: send less text"
            )


class KVCacheManager:
    """The block tables of `slots` slots. Pages are numbered from 1."""

    def __init__(self, slots: int, size: KVCacheSize) -> None:
        self.size = size
        self.free = list(range(size.pages, 0, -1))
        """Pages that no slot has; the last one is assigned first."""
        self._tables: list[list[int]] = [[] for _ in range(slots)]

    def table(self, slot: int) -> Sequence[int]:
        """Return the slot's pages in the order of its positions. Callers must not change the
        list."""
        return self._tables[slot]

    def capacity(self, slot: int) -> int:
        """Return how many positions the slot's pages hold."""
        return len(self._tables[slot]) * self.size.page_size

    def missing(self, slot: int, positions: int) -> int:
        """Return how many pages the slot lacks for its first `positions` positions."""
        return max(0, self.size.pages_for(positions) - len(self._tables[slot]))

    def reserve(self, reservations: Iterable[Reservation]) -> None:
        """Assign free pages to slots. Pages freed since these were chosen lie above them in
        `free`."""
        wanted: set[int] = set()
        for reservation in reservations:
            table = self._tables[reservation.slot]
            assert len(table) == reservation.first, f"a gap in the table of {reservation.id}"
            table.extend(reservation.pages)
            wanted.update(reservation.pages)
        above = []
        while wanted:
            page = self.free.pop()
            if page in wanted:
                wanted.remove(page)
            else:
                above.append(page)
        self.free.extend(reversed(above))

    def release(self, slot: int) -> None:
        """Take all pages of a slot back. May be called again."""
        table = self._tables[slot]
        self.free.extend(reversed(table))
        table.clear()
