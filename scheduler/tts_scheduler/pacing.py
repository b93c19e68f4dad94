"""Pacing: how much of the known text may be spoken now, and when an utterance is closed.

The talker takes a text token with every frame, and speaks each over two or three frames: given half
a sentence and no end, it stops in the middle of a word that it was given in full. So an utterance
whose text pauses is *closed*: the text it has is spoken to its end, and later text becomes another
utterance. Text that arrives faster than the talker takes it is passed on word by word. Slower text
is passed on in whole clauses, so that the silence falls between them.
"""

from __future__ import annotations

from enum import IntEnum
from math import inf
from typing import Literal

Mode = Literal["auto", "token", "clause", "sentence"]


class Unit(IntEnum):
    """A unit of text: text is passed to the talker up to the last known end of one."""

    WORD = 0
    CLAUSE = 1
    SENTENCE = 2


TAKES = 12.5
"""Tokens per second that the talker takes in real time."""
FLOWS = 14.0
"""Tokens per second that are enough to speak word by word: some words have more tokens."""
STALL = 1.0
"""A gap of more seconds says nothing about the pace of the text: its writer does something else."""
END_WAIT = 0.15
"""Seconds after which a mark at the end of the text counts as complete (`..` may become `...`)."""
_SLACK = 0.02
_PAUSED, _PAUSED_SLACK = 0.3, 0.1
"""After `_PAUSED` seconds without text, the safety margin grows by `_PAUSED_SLACK` seconds."""
_SLOWEST = 0.5  # longest reaction that counts, in seconds: longer ones are accidents
_FADE = 0.97  # factor on an arrival's weight with each later one
_LONGEST = {Unit.CLAUSE: 20.0, Unit.SENTENCE: 60.0}
"""Tokens to wait for the end of a unit; a longer one is passed on in smaller units."""


class FeedPace:
    """The rate at which text arrives, over all turns of a session."""

    def __init__(self) -> None:
        self.flows: bool | None = None
        """Whether text arrives fast enough to be spoken word by word; None until that is known."""
        self._tokens = self._seconds = 0.0
        self._intervals = 0

    def came(self, tokens: float, after: float) -> None:
        """Record that `tokens` of text arrived, `after` seconds after the text before them."""
        if after > STALL:
            return
        self._tokens = self._tokens * _FADE + tokens
        self._seconds = self._seconds * _FADE + after
        self._intervals += 1
        if self._intervals > 1:
            enough = TAKES if self.flows else FLOWS if self.flows is None else (FLOWS**2 / TAKES)
            self.flows = self._tokens >= enough * self._seconds


class Reaction:
    """Seconds that the engine takes from new text for a starved row to its sound."""

    def __init__(self, seconds: float = 0.05) -> None:
        self.seconds = seconds

    def note(self, seconds: float) -> None:
        """Record one reaction. A longer time counts at once, a shorter one gradually."""
        self.seconds = max(min(seconds, _SLOWEST), 0.8 * self.seconds + 0.2 * seconds)


class Pacing:
    """Paces the text of one turn. Times are seconds on the caller's clock.

    `mode`: `token`, `clause` and `sentence` name the unit; `auto` uses words where text arrives
    fast and clauses where it is slow. `dry_at` is when the listener will have heard all the sound.
    `speed`: seconds of speech that the listener hears in one second; faster speech takes its text
    faster.
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
        """Record that text arrived."""
        if self._last_at is not None:
            self._feed.came(tokens / self._speed, now - self._last_at)
        self._last_at = now

    def unit(self, words: int) -> Unit:
        """Return the unit in which text is passed on while `words` complete words wait."""
        if self._mode != "auto":
            units = {"token": Unit.WORD, "clause": Unit.CLAUSE, "sentence": Unit.SENTENCE}
            return units[self._mode]
        flows = words > 1 if self._feed.flows is None else self._feed.flows
        return Unit.WORD if flows else Unit.CLAUSE

    def units(
        self, words: int, tokens: float, begun: bool, dry_at: float, now: float
    ) -> tuple[Unit, ...]:
        """Return the units to pass text on in; the first one with a known end is used.

        `words` and `tokens` count the text that waits. `begun`: it follows a part of its clause
        that was passed on and cannot stop there; to hold it would only make the speech stop sooner.
        """
        unit = self.unit(words)
        if begun or now >= self.overdue_at(dry_at):
            return (Unit.WORD,)
        if tokens > _LONGEST.get(unit, inf):
            return tuple(Unit(each) for each in range(unit, -1, -1))
        return (unit,)

    def overdue_at(self, dry_at: float) -> float:
        """Return when the words of an incomplete unit are spoken: the text has stalled, and the
        listener has nothing else to hear."""
        return max((self._last_at or 0.0) + STALL, self.closes_at(dry_at))

    def end_at(self) -> float:
        """Return when a mark at the end of all text counts as the end of its clause or sentence."""
        return (self._last_at or 0.0) + END_WAIT

    def closes_at(self, dry_at: float) -> float:
        """Return when a row without text has to be closed for its sound to go on without a gap.

        While text flows, this is as late as the engine usually allows: each word that arrives
        before then saves a cut. Text that has paused rarely arrives just then, so more time is
        left, in case the engine is slower than usual.
        """
        latest = dry_at - 1.5 * self._reaction.seconds - _SLACK
        return min(latest, max(latest - _PAUSED_SLACK, (self._last_at or 0.0) + _PAUSED))
