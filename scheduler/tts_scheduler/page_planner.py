"""Pages for one step: which rows get some, which give all of theirs up, and which wait.

Changes nothing but itself: its decisions take effect when the plan is committed. A row that lacks a
page takes a free one. When none is free it waits until its listener has little left to hear, and
then preempts the rows whose listeners can wait longest: those without text first, then those with
the latest playback deadline. A preempted row is swapped out to host memory, keeps its slot, and is
swapped in again when there is room to spare, or when its own deadline comes near.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import ceil

from tts_scheduler.config import SchedulerConfig
from tts_scheduler.kv_cache import KVCacheManager
from tts_scheduler.plan import Prefill, Reservation, StepPlan, SwapIn, SwapOut
from tts_scheduler.playback import FRAME_SECONDS
from tts_scheduler.policy import MEMORY_AHEAD, PREEMPT_AHEAD, may_preempt_at, needs_memory_by
from tts_scheduler.utterance import Utterance


class PagePlanner:
    """The memory part of a plan under construction. `speaking`: all rows that own a slot."""

    def __init__(
        self,
        kv: KVCacheManager,
        config: SchedulerConfig,
        speaking: Collection[Utterance],
        now: float,
    ) -> None:
        self.swap_outs: list[SwapOut] = []
        self.reservations: list[Reservation] = []
        self.swap_ins: list[SwapIn] = []
        self._kv, self._config, self._speaking, self._now = kv, config, speaking, now
        self._taken = 0
        """Number of pages reserved here from the end of `kv.free`."""
        self._freed: list[int] = []
        """Pages of rows that are swapped out here."""
        self._ahead_frames = min(ceil(MEMORY_AHEAD / FRAME_SECONDS), kv.size.max_frames)
        self._ahead = -1
        """Pages that the rows on air need for the time ahead; -1 until counted."""
        self._given: dict[str, int] = {}
        """Number of pages that each row gets here; no row may take them in the same step."""
        self._out: set[str] = set()
        self.blocked = False
        """Whether a speaking row lacks memory: no turn starts before it has some."""
        self.idle = False
        """Whether all speaking rows wait for text: they give way to a start."""

    @property
    def available(self) -> int:
        """Number of pages that could still be reserved."""
        return len(self._kv.free) - self._taken + len(self._freed)

    def added_to(self, plan: StepPlan) -> StepPlan:
        """Return the plan with the decisions made here."""
        if not self.reservations:  # then no row was swapped out either
            return plan
        return replace(
            plan,
            swap_outs=tuple(self.swap_outs),
            reservations=tuple(self.reservations),
            swap_ins=tuple(self.swap_ins),
        )

    def fit(self, rows: list[Utterance]) -> tuple[list[Utterance], list[Utterance]]:
        """Split rows that could make a frame into those with the memory for it, and the others.

        If no row could go on otherwise, the most urgent one may take more (`_provide_for_first`).
        """
        short = [row for row in rows if row.frames >= row.frame_limit]
        if not short:
            return rows, short
        short.sort(key=lambda row: (needs_memory_by(row), row.order))
        for row in short:
            if row.id not in self._out:
                self._provide(row, self._victims(row, row) if self._is_urgent(row) else None)
        if not self._given and len(short) == len(rows):
            self._provide_for_first(short)
        lacking = {row.id for row in short} - self._given.keys()
        self.blocked = bool(lacking)
        lacking |= self._out
        if not lacking:
            return rows, []
        waiting = [row for row in rows if row.id in lacking]
        return [row for row in rows if row.id not in lacking], waiting

    def start(self, prefill: Prefill) -> bool:
        """Reserve pages for a prompt. Returns False if too few are left for the rows on air and for
        its own beginning."""
        size = self._kv.size
        longest = prefill.prompt + size.max_frames
        needed = size.pages_for(min(prefill.positions + self._ahead_frames, longest))
        if self._ahead < 0:
            self._ahead = self._pages_ahead()
        if self.available < needed + self._ahead:
            if not self.idle or self._given:
                return False
            victims = self._enough(self._victims(), needed)
            if victims is None:
                return False
            self._swap_out(victims)
            self._ahead = 0
        wanted = size.pages_for(prefill.positions)
        self._reserve(prefill.id, prefill.slot, 0, wanted)
        self._ahead += needed - wanted
        return True

    def _provide(self, row: Utterance, victims: Iterator[Utterance] | None) -> None:
        """Reserve pages for the row's next frame, and for all its positions if it is swapped out.
        `victims`: those that give way to it, if it does not wait for free pages."""
        missing = self._kv.missing(row.slot, row.prompt_positions + row.frames)
        spare = self._pages_ahead() if row.swapped and victims is None else 0
        if self.available < missing + spare:
            chosen = None if victims is None else self._enough(victims, missing)
            if chosen is None:
                return
            self._swap_out(chosen)
        self._reserve(row.id, row.slot, len(self._kv.table(row.slot)), missing)
        if row.swapped:
            self.swap_ins.append(SwapIn(row.id, row.slot))

    def _provide_for_first(self, short: Sequence[Utterance]) -> None:
        """Reserve pages for the most urgent of `short`, where no row can go on without.

        Close to its deadline, it takes them from all others. While even its listener has more than
        the lead cap to hear, all of them save files: then it takes them from those that lack memory
        as well, because the engine would stand still until a deadline comes near.
        """
        first = short[0]
        if self._is_urgent(first):
            self._provide(first, self._victims(spared=first))
        elif needs_memory_by(first) > self._now + self._config.lead_cap:
            self._provide(first, (row for row in reversed(short[1:]) if not row.swapped))

    def _is_urgent(self, row: Utterance) -> bool:
        return may_preempt_at(row) <= self._now

    def _victims(
        self, urgent: Utterance | None = None, spared: Utterance | None = None
    ) -> Iterator[Utterance]:
        """Yield the rows that can give way, first those that can wait longest.

        Rows that have text are yielded only if they need their memory clearly later than `urgent`;
        `spared` never is.
        """
        settled = self._given.keys() | self._out
        resident = [
            (row.can_go_on, -needs_memory_by(row), row.order, row)
            for row in self._speaking
            if not row.swapped and row is not spared and row.id not in settled
        ]
        resident.sort()
        latest = None if urgent is None else needs_memory_by(urgent) + PREEMPT_AHEAD
        for can_go_on, by, _, row in resident:
            if can_go_on and latest is not None and -by <= latest:
                return
            yield row

    def _enough(self, victims: Iterator[Utterance], pages: int) -> list[Utterance] | None:
        """Return as many victims as it takes to have `pages` pages, or None if all are too few."""
        available, chosen = self.available, []
        for row in victims:
            if available >= pages:
                break
            available += len(self._kv.table(row.slot))
            chosen.append(row)
        return chosen if available >= pages else None

    def _swap_out(self, victims: Sequence[Utterance]) -> None:
        for row in victims:
            self.swap_outs.append(SwapOut(row.id, row.slot))
            self._freed.extend(reversed(self._kv.table(row.slot)))
            self._out.add(row.id)

    def _reserve(self, id: str, slot: int, first: int, count: int) -> None:
        freed = min(count, len(self._freed))
        pages = [self._freed.pop() for _ in range(freed)]
        end = len(self._kv.free) - self._taken
        self._taken += count - freed
        pages += reversed(self._kv.free[end - (count - freed) : end])
        self.reservations.append(Reservation(id, slot, first, tuple(pages)))
        self._given[id] = count

    def _pages_ahead(self) -> int:
        """Return how many pages the rows that stay in memory lack for the time ahead."""
        kv, ahead, given = self._kv, self._ahead_frames, self._given
        return sum(
            max(
                0,
                kv.missing(row.slot, row.prompt_positions + row.frames + ahead)
                - given.get(row.id, 0),
            )
            for row in self._speaking
            if (not row.swapped or row.id in given) and row.id not in self._out
        )
