"""Admission: take a new turn, let it wait a moment, or refuse it at once with a time to retry.

A turn in progress is worth more than a new one. Capacity is how many turns the machine can speak at
the same time. A held, parked or swapped turn still counts, because it will be back, and one that is
played faster counts as more than one, because it needs more frames, and more steps for all. Where
the memory for keys and values has a limit, a turn also needs room in it: all live turns and the new
one are assumed to become as long as turns usually are, and what they need at the worst moment has
to fit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from math import ceil

from tts_scheduler.config import SchedulerConfig
from tts_scheduler.cost import CostModel
from tts_scheduler.kv_cache import KVCacheSize
from tts_scheduler.plan import prompt_positions
from tts_scheduler.playback import FRAME_SECONDS
from tts_scheduler.request_table import RequestTable
from tts_scheduler.shares import Shares
from tts_scheduler.utterance import Phase, Utterance

SHORTEST_RETRY = 0.25
"""The least seconds after which a refused turn is told to try again."""
_USUAL_SECONDS = 10.0
"""Assumed seconds of speech of a turn, until the first turn has ended."""
_USUAL_PROMPT = 64
"""Assumed positions of a turn's prompt, until the first turn has ended."""
_ROUNDING = 1e-6
_LONG = 8.0
"""A turn of more than this many times the mean counts as that many times the mean."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """The utterance will be spoken."""


@dataclass(frozen=True, slots=True)
class Queued:
    """The utterance waits for capacity; it may still time out."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The utterance was not taken; try again in `retry_after` seconds. `reason` is for people."""

    retry_after: float
    reason: str


Admission = Admitted | Queued | Refused


class UsualLength:
    """A running mean over about the last fifty turns, in seconds, frames or positions."""

    def __init__(self, guess: float) -> None:
        self.mean = guess
        self._seen = 0

    def note(self, length: float) -> None:
        """Add the length of a turn that has ended.

        A turn that outlasted a pause of the machine, or was held for an hour, says little about
        others: from the second turn on, at most `_LONG` times the mean is added.
        """
        if self._seen:
            length = min(length, _LONG * max(self.mean, 1.0))
        self._seen += 1
        self.mean += (length - self.mean) / min(self._seen, 50)


class Turnover(UsualLength):
    """How many seconds turns take, and so how soon one of several will end."""

    def wait(self, ahead: int, live: int) -> float:
        """Return the expected seconds until `ahead` + 1 of `live` turns have ended."""
        return (ahead + 1) * self.mean / max(live, 1)


def peak_pages(rows: Iterable[Utterance], usual_frames: float, size: KVCacheSize) -> int:
    """Return the most pages that `rows` will have at once, if each makes `usual_frames` frames.

    A row that is longer already is expected to end any moment. The most is needed when some row
    makes its last frame: the rows that go on longer have grown by as much until then.
    """
    ends = []
    for row in rows:
        prompt = row.prompt_positions or row.full_positions
        ends.append((max(1, round(usual_frames) - row.frames), prompt + row.frames))
    ends.sort(reverse=True)
    most = held = 0
    for number, (further, positions) in enumerate(ends, 1):
        held += size.pages_for(positions)
        most = max(most, held + number * size.pages_for(further))
    return most


class AdmissionControl:
    """Decides which turns may start, from the turns that have ended and those that are live."""

    def __init__(self, config: SchedulerConfig, requests: RequestTable, cost: CostModel) -> None:
        self._config, self._requests, self._cost = config, requests, cost
        # Until a turn has ended: a guess above the queue's timeout would refuse everybody.
        self._turnover = Turnover(min(_USUAL_SECONDS, config.queue_timeout))
        self._frames = UsualLength(_USUAL_SECONDS / FRAME_SECONDS)
        self._prompt = UsualLength(_USUAL_PROMPT)
        self._shares = Shares()
        self._memory_is_full = False
        """Whether the first of the queue lacks memory; checked again when a turn has ended."""

    def decide(self, row: Utterance) -> Admission:
        """Return the decision about a new turn. The turn is not recorded. One with
        `Utterance.continues` is queued rather than refused."""
        requests, capacity = self._requests, self.in_time(row.extra)
        queued = self._order(*requests.queue, row).index(row) if requests.queue else 0
        live, has_memory = self._live(row), self.has_memory(row)
        if row.continues:
            queued = sum(other.continues for other in requests.queue)
            if queued or live >= capacity or not has_memory:
                return Queued()
        return admit(live, queued, capacity, self._turnover, self._config, has_memory)

    def next(self) -> Utterance | None:
        """Return the first of the queue, by the accounts' shares, or None if it has to wait."""
        queue = self._requests.queue
        if self._memory_is_full or not queue:
            return None
        first = self._order(*queue)[0]
        if self._live(first) >= self.in_time(first.extra):
            return None
        if self.has_memory(first):
            return first
        self._memory_is_full = True
        return None

    def crowded_out(self) -> Utterance | None:
        """Return the last turn of a queue that is too long, not counting turns that continue."""
        queue = self._requests.queue
        if sum(not row.continues for row in queue) <= self._config.queue_length:
            return None
        return self._order(*queue)[-1]

    def _order(self, *rows: Utterance) -> list[Utterance]:
        requests = self._requests
        active = chain(requests.waiting.values(), requests.speaking.values())
        return self._shares.order(rows, active)

    def _live(self, row: Utterance) -> int:
        """Return the number of live turns beside `row`, with faster speech counted as more than
        one; 0 if `row` is alone, so that a lone turn always has capacity."""
        requests = self._requests
        if not requests.active:
            return 0
        return requests.active + ceil(requests.extra + row.extra - _ROUNDING)

    def in_time(self, extra: float = 0.0) -> int:
        """Return how many turns can be live at once by the learned step times, one with `extra`
        (`Utterance.extra`) among them.

        The fastest turn says how many steps there are, and each has its base cost.
        """
        config, cost = self._config, self._cost
        budget = config.utilisation * FRAME_SECONDS
        budget -= max(extra, self._requests.most_extra) * cost.costs.base
        return cost.capacity(budget, config.slots, config.rows_per_step)

    @property
    def capacity(self) -> int:
        """How many turns can be live at once, by time and memory. What turns that are played faster
        take beyond one turn each is no capacity for others."""
        extra = ceil(self._requests.extra - _ROUNDING)
        return max(1, min(self.in_time() - extra, self.turns_in_memory))

    @property
    def turns_in_memory(self) -> int:
        """How many turns of the usual length `peak_pages` lets into memory if they begin one after
        another: each then has half of its frames on average, and rounding costs 1.5 pages."""
        kv = self._requests.kv
        if kv is None:
            return self._config.slots
        frames = min(self._frames.mean, kv.size.max_frames)
        pages = (self._prompt.mean + frames / 2) / kv.size.page_size + 1.5
        return max(1, int(self._config.kv_utilisation * kv.size.pages / pages))

    def has_memory(self, row: Utterance) -> bool:
        """Return whether the row's keys and values should fit beside those of all live turns."""
        requests = self._requests
        if requests.kv is None or not requests.active:
            return True
        size = requests.kv.size
        usual = min(self._frames.mean, size.max_frames)
        budget = self._config.kv_utilisation * size.pages
        if (requests.active + 1) * size.pages_for(size.row_positions) <= budget:
            return True  # for turns of any length, so there is no need to count
        if self.pages_at_most(row, usual) <= budget:
            return True
        rows = (row, *requests.waiting.values(), *requests.speaking.values())
        return peak_pages(rows, usual, size) <= budget

    def pages_at_most(self, row: Utterance, usual_frames: float) -> int:
        """Return an upper bound of `peak_pages` for `row` and all live turns, found much sooner.

        A start is decided while others wait, so the peak of hundreds of turns is computed only
        where memory is short. The bound is what every turn holds now and the usual length from here
        on, with a page more for each, since a row reserves its next one when it makes the frame.
        The prompts of waiting turns are counted together, as if each began a page of its own.
        """
        requests = self._requests
        assert requests.kv is not None, "without a limit there is nothing to count"
        size, live = requests.kv.size, requests.active + 1
        held = size.pages - len(requests.kv.free) + size.pages_for(row.full_positions + row.frames)
        waiting = requests.waiting.values()
        known = sum(other.prompt_tokens + other.received + other.frames for other in waiting)
        held += size.pages_for(known + len(waiting) * prompt_positions(size.page_size, 0))
        held += sum(
            size.pages_for(other.prompt_positions + other.frames)
            for other in requests.speaking.values()
            if other.swapped
        )
        return held + live * (size.pages_for(max(1, round(usual_frames))) + 1)

    def note_end(self, row: Utterance, now: float) -> None:
        """Learn from a turn that has ended, and let the queue be looked at again."""
        if row.phase is not Phase.QUEUED:
            self._turnover.note(now - row.admitted_at)
        if row.phase is Phase.SPEAKING:
            self._frames.note(row.frames)
            self._prompt.note(row.prompt_positions)
        accounts = self._requests.accounts
        last = accounts[row.account] == 1  # `row` itself is still counted
        self._shares.note_end(row, accounts.keys() - {row.account} if last else accounts.keys())
        self._memory_is_full = False


def admit(
    live: int,
    queued: int,
    capacity: int,
    turnover: Turnover,
    config: SchedulerConfig,
    has_memory: bool = True,
) -> Admission:
    """Return the decision about a new turn when `live` turns are admitted and `queued` wait before
    it.

    `has_memory`: whether its keys and values are expected to fit beside those of the others.
    """
    if live < capacity and has_memory and not queued:
        return Admitted()
    wait = turnover.wait(queued, live)
    retry_after = max(SHORTEST_RETRY, wait)
    taken = f"live turns: {live} of {capacity}"
    if not has_memory:
        taken = f"live turns: {live}, with the memory for keys and values taken"
    if queued >= config.queue_length:
        return Refused(retry_after, f"{taken}; waiting: {queued}")
    if wait > config.queue_timeout:
        return Refused(retry_after, f"{taken}; none is expected to end in time")
    return Queued()
