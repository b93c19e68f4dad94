"""Pacing: how much of the text that is known may be spoken now, and when speech is closed.

The talker takes a text token with every frame, and speaks each over two or three frames: given
half a sentence and no end, it stands still in the middle of a word that it was given in full. So
an utterance whose text pauses is *closed*: what it was given is spoken to its end, and what comes
next is another utterance. Text that comes faster than the talker takes it is given on word by
word. Of text that comes slower, whole clauses are, so that the silence falls behind them.
"""

from __future__ import annotations

from enum import IntEnum
from math import inf
from typing import Literal

Mode = Literal["auto", "token", "clause", "sentence"]


class Unit(IntEnum):
    """What is given to the talker as one: up to the last known end of it."""

    WORD = 0
    CLAUSE = 1
    SENTENCE = 2


TAKES = 12.5
"""Tokens a second that the talker takes in real time."""
FLOWS = 14.0
"""Tokens a second that are enough to speak word by word: some words have more of them."""
STALL = 1.0
"""Seconds without text that say nothing of its pace: the writer does something else."""
END_WAIT = 0.15
"""Seconds after which text that ends in a mark is taken to have no more of it (`..` of `...`)."""
_SLACK = 0.02
_PAUSED, _PAUSED_SLACK = 0.3, 0.1
"""After so many seconds without text there is so much more of it."""
_SLOWEST = 0.5  # reaction that is believed: longer ones are accidents
_FADE = 0.97  # how much an arrival counts when the next has come
_LONGEST = {Unit.CLAUSE: 20.0, Unit.SENTENCE: 60.0}
"""Tokens of a unit that are waited for; of a longer one the words are given on."""


class FeedPace:
    """How fast text comes, over all turns of a session."""

    def __init__(self) -> None:
        self.flows: bool | None = None
        """Whether it comes fast enough to be spoken word by word; None: nobody knows yet."""
        self._tokens = self._seconds = 0.0
        self._intervals = 0

    def came(self, tokens: float, after: float) -> None:
        """So many tokens came, so many seconds after the text before them."""
        if after > STALL:
            return
        self._tokens = self._tokens * _FADE + tokens
        self._seconds = self._seconds * _FADE + after
        self._intervals += 1
        if self._intervals > 1:
            enough = TAKES if self.flows else FLOWS if self.flows is None else (FLOWS**2 / TAKES)
            self.flows = self._tokens >= enough * self._seconds


class Reaction:
    """How long the engine takes from text for a row that stood still to its sound."""

    def __init__(self, seconds: float = 0.05) -> None:
        self.seconds = seconds

    def note(self, seconds: float) -> None:
        """A longer time counts at once, a shorter one little by little."""
        self.seconds = max(min(seconds, _SLOWEST), 0.8 * self.seconds + 0.2 * seconds)


class Pacing:
    """Decides for one turn. Times are seconds on the caller's clock.

    `mode`: `token`, `clause` and `sentence` name the unit; `auto` takes words where the feed is
    fast and clauses where it is slow. `dry_at` is when the listener has heard all there is.
    `speed`: of its seconds; speech that is played faster takes its text faster.
    """

    def __init__(
        self,
        mode: Mode = "auto",
        feed: FeedPace | None = None,
        reaction: Reaction | None = None,
        speed: float = 1.0,
    ) -> None:
        self._mode = mode
        self._speed = speed
        self._feed = feed or FeedPace()
        self._reaction = reaction or Reaction()
        self._last_at: float | None = None

    def came(self, tokens: float, now: float) -> None:
        """Text came."""
        if self._last_at is not None:
            self._feed.came(tokens / self._speed, now - self._last_at)
        self._last_at = now

    def unit(self, words: int) -> Unit:
        """What is given on as one, where so many complete words wait."""
        if self._mode != "auto":
            units = {"token": Unit.WORD, "clause": Unit.CLAUSE, "sentence": Unit.SENTENCE}
            return units[self._mode]
        flows = words > 1 if self._feed.flows is None else self._feed.flows
        return Unit.WORD if flows else Unit.CLAUSE

    def units(
        self, words: int, tokens: float, begun: bool, dry_at: float, now: float
    ) -> tuple[Unit, ...]:
        """Ends to give text on to: the first of them that there is.

        `words`, `tokens`: those that wait. `begun`: behind a part of their clause, which cannot
        stop there; so to hold them would only make it stop sooner.
        """
        unit = self.unit(words)
        if begun or now >= self.overdue_at(dry_at):
            return (Unit.WORD,)
        if tokens > _LONGEST.get(unit, inf):
            return tuple(Unit(each) for each in range(unit, -1, -1))
        return (unit,)

    def overdue_at(self, dry_at: float) -> float:
        """When the words of an incomplete unit are spoken: the text has stalled, and the listener
        has nothing else to hear."""
        return max((self._last_at or 0.0) + STALL, self.closes_at(dry_at))

    def end_at(self) -> float:
        """When a mark at the end of all text is the end of its clause or sentence."""
        return (self._last_at or 0.0) + END_WAIT

    def closes_at(self, dry_at: float) -> float:
        """When a row without text has to be closed for its sound to go on without a gap.

        As late as the engine usually allows while text flows: each word that comes before then
        saves a cut. Text that has paused hardly comes at just that moment; so there is time then
        for an engine that is slower than usual.
        """
        latest = dry_at - 1.5 * self._reaction.seconds - _SLACK
        return min(latest, max(latest - _PAUSED_SLACK, (self._last_at or 0.0) + _PAUSED))
