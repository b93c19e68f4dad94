"""How far a pass is, for whoever watches."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int | None], None]
"""(what, done, total); total None where time, not a count, ends it."""


class Counter:
    """Counts measured turns for the progress display."""

    def __init__(self, what: str, progress: Progress, total: int | None) -> None:
        self._what, self._progress, self._total = what, progress, total
        self._done = 0
        progress(what, 0, total)

    def one(self) -> None:
        self._done += 1
        self._progress(self._what, self._done, self._total)
