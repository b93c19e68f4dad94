"""RequestTable: every utterance that is not over, by phase, and which has which slot and pages."""

from __future__ import annotations

from bisect import insort
from collections import Counter, deque
from itertools import chain

from tts_scheduler.kv_cache import KVCacheManager
from tts_scheduler.plan import Prefill, StepPlan
from tts_scheduler.utterance import Phase, Stats, Utterance


class RequestTable:
    """All utterances by id (`utterances`), and by phase in `queue`, `waiting` or `speaking`.
    `free_slots` ascends. `kv` has the slots' pages, or is None where memory has no limit.
    Everything may be read directly; changes go through the methods."""

    def __init__(self, slots: int, kv: KVCacheManager | None) -> None:
        self.kv = kv
        self.utterances: dict[str, Utterance] = {}
        self.accounts: Counter[str] = Counter()
        """Number of utterances of each account; accounts without any are not in it."""
        self.queue: deque[Utterance] = deque()
        self.waiting: dict[str, Utterance] = {}
        self.speaking: dict[str, Utterance] = {}
        self.free_slots = list(range(slots))
        self.extra = 0.0
        """Sum of `Utterance.extra` over the active utterances."""
        self._over: dict[str, Stats] = {}

    @property
    def active(self) -> int:
        """Number of admitted utterances that are not over."""
        return len(self.waiting) + len(self.speaking)

    @property
    def most_extra(self) -> float:
        """The most `Utterance.extra` of an active utterance; 0 without any."""
        if not self.extra:
            return 0.0
        active = chain(self.waiting.values(), self.speaking.values())
        return max((row.extra for row in active), default=0.0)

    def fits(self, prompt_positions: int) -> bool:
        """Return whether memory could hold such a prompt and its speech if nothing else used it."""
        return self.kv is None or self.kv.size.fits(prompt_positions)

    def check_memory(self, prompt_positions: int) -> None:
        """Raise DoesNotFit for a prompt that does not fit even if nothing else uses the memory."""
        if self.kv is not None:
            self.kv.size.check(prompt_positions)

    def enqueue(self, row: Utterance) -> None:
        """Queue a new utterance until there is capacity; one that continues goes before others."""
        self._add(row)
        before = sum(other.continues for other in self.queue) if row.continues else len(self.queue)
        self.queue.insert(before, row)

    @property
    def first_new(self) -> Utterance | None:
        """The first utterance in the queue that does not continue a turn, or None."""
        return next((row for row in self.queue if not row.continues), None)

    def admit(self, row: Utterance, now: float) -> None:
        """Let an utterance, new or from the queue, wait for its first step."""
        if row.id in self.utterances:
            self.queue.remove(row)
        else:
            self._add(row)
        row.move(Phase.WAITING)
        row.admitted_at = now
        self.waiting[row.id] = row
        self.extra += row.extra

    def _add(self, row: Utterance) -> None:
        self.utterances[row.id] = row
        self.accounts[row.account] += 1

    def begin(self, row: Utterance, prefill: Prefill) -> None:
        """Move a waiting utterance into a free slot: it speaks now."""
        del self.waiting[row.id]
        self.speaking[row.id] = row
        self.free_slots.remove(prefill.slot)
        row.move(Phase.SPEAKING)
        row.slot, row.prompt_positions = prefill.slot, prefill.prompt

    def move_pages(self, plan: StepPlan) -> None:
        """Apply the swaps and reservations of a plan that was done, except for ended utterances."""
        if self.kv is None or not plan.reservations:
            return
        for out in plan.swap_outs:
            row = self.speaking.get(out.id)
            if row is not None:
                self.kv.release(out.slot)
                row.swapped, row.frame_limit = True, 0
        granted = [each for each in plan.reservations if each.id in self.speaking]
        self.kv.reserve(granted)
        for reservation in granted:
            row = self.speaking[reservation.id]
            row.swapped = False
            row.frame_limit = self.kv.capacity(row.slot) - row.prompt_positions + 1

    def end(self, row: Utterance, now: float) -> None:
        """End an utterance. Every way it can end goes through here, once."""
        if row.phase is Phase.QUEUED:
            self.queue.remove(row)
        else:
            self.extra -= row.extra
        self.waiting.pop(row.id, None)
        self.speaking.pop(row.id, None)
        if row.slot >= 0:
            insort(self.free_slots, row.slot)
            if self.kv is not None:
                self.kv.release(row.slot)
        row.move(Phase.ENDED)
        del self.utterances[row.id]
        self.accounts[row.account] -= 1
        if not self.accounts[row.account]:
            del self.accounts[row.account]
        self._over[row.id] = row.stats(now)

    def forget(self) -> None:
        """Forget the utterances that are over."""
        self._over.clear()

    def stats(self, id: str, now: float | None) -> Stats:
        """Return a snapshot, also of an utterance that ended, until `forget`. Raises KeyError."""
        row = self.utterances.get(id)
        return self._over[id] if row is None else row.stats(now)

    def held_seconds(self, id: str, now: float) -> float:
        """Return `stats(id, now).held_seconds` alone: every packet asks for it. Raises KeyError."""
        row = self.utterances.get(id)
        if row is None:
            return self._over[id].held_seconds
        since = row.held_since
        return row.held_seconds if since is None else row.held_seconds + now - since
