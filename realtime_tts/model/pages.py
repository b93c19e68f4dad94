"""Which pages of a paged cache belong to which slot. Host side only: numbers, no tensors.

A page holds a fixed number of positions. Page 0 is the scratch page, which nobody owns: it takes
what padding rows write, and stands in a table wherever a slot has no page.
"""

from __future__ import annotations

from realtime_tts.errors import OutOfPages

PAGE_SIZE = 16
"""Positions of a page: 1.3 s of speech, so a turn wastes 0.6 s of it on average."""

SCRATCH_PAGE = 0

Change = tuple[int, int, int]
"""An entry of the tables that is new: slot, column, page."""


class PageTables:
    """The tables of `slots` slots over `pages` pages, numbered from 1, of `page_size` positions.

    A slot holds at most `max_pages` pages. `take_changes` tells what a copy of the tables
    elsewhere has to catch up with.
    """

    def __init__(self, slots: int, pages: int, page_size: int, max_pages: int) -> None:
        assert min(slots, pages, page_size, max_pages) > 0
        self.pages, self.page_size, self.max_pages = pages, page_size, max_pages
        # From the end, so that a fresh allocator hands out 1, 2, 3, ...
        self._free = list(range(pages, SCRATCH_PAGE, -1))
        self._tables: list[list[int]] = [[] for _ in range(slots)]
        self._changes: dict[tuple[int, int], int] = {}

    @property
    def free(self) -> int:
        """Pages that no slot has."""
        return len(self._free)

    def pages_for(self, positions: int) -> int:
        """Pages that so many positions take."""
        return -(-positions // self.page_size)

    def table(self, slot: int) -> tuple[int, ...]:
        """The slot's pages, in the order of its positions."""
        return tuple(self._tables[slot])

    def capacity(self, slot: int) -> int:
        """Positions the slot's pages hold."""
        return len(self._tables[slot]) * self.page_size

    def reserve(self, slot: int, positions: int) -> None:
        """Give the slot pages for its first `positions` positions; it keeps those it has.

        Raises OutOfPages, having changed nothing.
        """
        table = self._tables[slot]
        wanted = self.pages_for(positions)
        if wanted > self.max_pages:
            raise OutOfPages(
                f"{positions} positions do not fit into one slot, which holds at most "
                f"{self.max_pages * self.page_size}"
            )
        missing = wanted - len(table)
        if missing > len(self._free):
            raise OutOfPages(
                f"{positions} positions need {missing} further pages of {self.page_size}, and "
                f"{len(self._free)} of {self.pages} are free; end other turns or give the cache "
                "more memory"
            )
        for column in range(len(table), wanted):
            table.append(self._free.pop())
            self._changes[slot, column] = table[-1]

    def clear(self, slot: int) -> None:
        """Take all pages back; may be repeated."""
        table = self._tables[slot]
        for column in range(len(table)):
            self._changes[slot, column] = SCRATCH_PAGE
        self._free.extend(reversed(table))
        table.clear()

    @property
    def changed(self) -> bool:
        """Whether there is anything to take."""
        return bool(self._changes)

    def take_changes(self) -> list[Change]:
        """The entries changed since the last call, each once, as they are now."""
        changes = [(slot, column, page) for (slot, column), page in self._changes.items()]
        self._changes.clear()
        return changes
