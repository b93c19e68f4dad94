"""Shares: the order in which accounts get free capacity when more is asked for than there is.

The next turn goes to the account with the fewest live turns relative to its share, so slots are
divided as seats are by D'Hondt's method. Accounts that are level take turns: the one that was given
the least speech goes first. So an account gets its share of a full machine, however many turns it
asks for, and may use what others leave. Turns of one account keep their order of arrival.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from tts_scheduler.utterance import Utterance


class Shares:
    """Frames spoken for each account, as long as it has turns that wait or are live."""

    def __init__(self) -> None:
        self._frames: dict[str, float] = {}

    def order(self, queue: Iterable[Utterance], active: Iterable[Utterance]) -> list[Utterance]:
        """Return the queued turns in the order in which to admit them beside the `active` ones.
        `queue` is in order of arrival. Turns that continue another come first."""
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
        """Count the frames of a turn that ended. `here`: accounts that have other turns, waiting or
        live. An account without any is forgotten, and later starts level with the others: it saves
        nothing up, and does not pay for what it used while that was free."""
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
