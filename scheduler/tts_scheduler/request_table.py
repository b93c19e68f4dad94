"""RequestTable: every utterance that is not over, by phase, and who owns which slot and pages."""

from __future__ import annotations

from bisect import insort
from collections import Counter, deque

from tts_scheduler.kv_cache import KVCacheManager
from tts_scheduler.plan import Prefill, StepPlan
from tts_scheduler.utterance import Phase, Stats, Utterance


class RequestTable:
    """`utterances` has all by id; each is also in `queue`, `waiting` or `speaking`, as its phase
    says. `free_slots` ascends. `kv` has the slots' pages; None: memory without a limit. Read them
    freely; whoever moves comes through the methods."""

    def __init__(self, slots: int, kv: KVCacheManager | None = None) -> None:
        self.kv = kv
        self.utterances: dict[str, Utterance] = {}
        self.accounts: Counter[str] = Counter()
        """How many utterances each account has here; who has none is not among them."""
        self.queue: deque[Utterance] = deque()
        self.waiting: dict[str, Utterance] = {}
        self.speaking: dict[str, Utterance] = {}
        self.free_slots = list(range(slots))
        self.extra = 0.0
        """How many more turns those that are active are like, see `Utterance.extra`."""
        self._over: dict[str, Stats] = {}

    @property
    def active(self) -> int:
        """Admitted utterances that are not over."""
        return len(self.waiting) + len(self.speaking)

    def fits(self, prompt_positions: int) -> bool:
        """The memory could hold such a prompt and its speech, if there were nobody else."""
        return self.kv is None or self.kv.size.fits(prompt_positions)

    def check_memory(self, prompt_positions: int) -> None:
        """Raises DoesNotFit for a prompt that does not fit."""
        if self.kv is not None:
            self.kv.size.check(prompt_positions)

    def enqueue(self, row: Utterance) -> None:
        """A new utterance waits for capacity."""
        self._add(row)
        before = sum(other.continues for other in self.queue) if row.continues else len(self.queue)
        self.queue.insert(before, row)

    @property
    def first_new(self) -> Utterance | None:
        """The first of the queue that does not continue a turn."""
        return next((row for row in self.queue if not row.continues), None)

    def admit(self, row: Utterance, now: float) -> None:
        """A new utterance, or one of the queue, waits for its first step."""
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
        """A waiting one speaks, in a slot that was free."""
        del self.waiting[row.id]
        self.speaking[row.id] = row
        self.free_slots.remove(prefill.slot)
        row.move(Phase.SPEAKING)
        row.slot, row.prompt_positions = prefill.slot, prefill.positions - prefill.spoken

    def move_pages(self, plan: StepPlan) -> None:
        """What a plan that was carried out did to the memory of those who speak still."""
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
        """Every way an utterance ends comes through here, and each comes through once."""
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

    # What is known of one, also when it is over, until `forget`.

    def forget(self) -> None:
        """Those that are over are no longer known."""
        self._over.clear()

    def stats(self, id: str, now: float | None) -> Stats:
        """Raises KeyError."""
        row = self.utterances.get(id)
        return self._over[id] if row is None else row.stats(now)

    def held_seconds(self, id: str, now: float) -> float:
        """`stats(id, now).held_seconds` without the rest, for every packet asks."""
        row = self.utterances.get(id)
        if row is None:
            return self._over[id].held_seconds
        since = row.held_since
        return row.held_seconds if since is None else row.held_seconds + now - since
