"""Shares: in which order accounts get what is free, where more is asked for than there is.

The next turn is of the account that has the fewest live turns for its share: so the slots are
divided as by D'Hondt's method, seat by seat. Accounts that are level take turns: the one goes first
that was given the least speech. So an account gets its share of a full machine, however many turns
it asks for; what others leave, it may have. Turns of one account are in the order they came.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from tts_scheduler.utterance import Utterance


class Shares:
    """What each account was given, as long as it has turns that wait or are live."""

    def __init__(self) -> None:
        self._frames: dict[str, float] = {}

    def order(self, queue: Iterable[Utterance], active: Iterable[Utterance]) -> list[Utterance]:
        """Those that wait, oldest first, in the order in which they are to be admitted beside those
        that are `active`. Turns that were spoken in part come first."""
        rows = list(queue)
        if len({row.account for row in rows}) <= 1:
            return sorted(rows, key=lambda row: not row.continues)
        taken = Counter(row.account for row in active)
        given = self._given(rows)

        def rank(row: Utterance) -> tuple[bool, float, float, int]:
            if row.continues:
                return False, 0.0, 0.0, row.order
            taken[row.account] += 1
            account, share = row.account, row.share
            return True, taken[account] / share, given[account] / share, row.order

        return sorted(rows, key=rank)

    def note_end(self, row: Utterance, here: Collection[str]) -> None:
        """A turn is over; these accounts have others, which wait or are live. Who has none is
        forgotten, and begins level with the others: nobody saves up, or pays for what was his while
        it was free."""
        self._frames[row.account] = self._frames.get(row.account, 0.0) + row.frames
        if len(here) <= 1:
            self._frames.clear()
        else:
            self._frames = {name: sum for name, sum in self._frames.items() if name in here}

    def _given(self, rows: Iterable[Utterance]) -> dict[str, float]:
        least = min(self._frames.values(), default=0.0)
        for row in rows:
            self._frames.setdefault(row.account, least)
        return self._frames
