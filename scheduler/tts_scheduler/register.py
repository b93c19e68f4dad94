"""Register: who is where. Every utterance that is not over, by phase, and who owns which slot."""

from __future__ import annotations

from bisect import insort
from collections import deque

from tts_scheduler.utterance import Phase, Stats, Utterance


class Register:
    """`utterances` has all by id; each is also in `queue`, `waiting` or `speaking`, as its phase
    says. `free_slots` ascends. Read them freely; whoever moves comes through the methods."""

    def __init__(self, slots: int) -> None:
        self.utterances: dict[str, Utterance] = {}
        self.queue: deque[Utterance] = deque()
        self.waiting: dict[str, Utterance] = {}
        self.speaking: dict[str, Utterance] = {}
        self.free_slots = list(range(slots))
        self._over: dict[str, Stats] = {}

    @property
    def active(self) -> int:
        """Admitted utterances that are not over."""
        return len(self.waiting) + len(self.speaking)

    def enqueue(self, row: Utterance) -> None:
        """A new utterance waits for capacity."""
        self.utterances[row.id] = row
        self.queue.append(row)

    def admit(self, row: Utterance, now: float) -> None:
        """A new utterance, or the first of the queue, waits for its first step."""
        if self.queue and self.queue[0] is row:
            self.queue.popleft()
        self.utterances[row.id] = row
        row.move(Phase.WAITING)
        row.admitted_at = now
        self.waiting[row.id] = row

    def begin(self, row: Utterance, slot: int) -> None:
        """A waiting one speaks, in a slot that was free."""
        del self.waiting[row.id]
        self.speaking[row.id] = row
        self.free_slots.remove(slot)
        row.move(Phase.SPEAKING)
        row.slot = slot

    def end(self, row: Utterance, now: float) -> None:
        """Every way an utterance ends comes through here, and each comes through once."""
        if row.phase is Phase.QUEUED:
            self.queue.remove(row)
        self.waiting.pop(row.id, None)
        self.speaking.pop(row.id, None)
        if row.slot >= 0:
            insort(self.free_slots, row.slot)
        row.move(Phase.ENDED)
        del self.utterances[row.id]
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
