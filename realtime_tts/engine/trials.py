"""Trials: turns that may be the cause of engine failures are tried apart from each other."""

from __future__ import annotations

from realtime_tts.engine.open_utterance import OpenUtterance

MOST_TRIALS = 3
"""A turn that fails in this many trials is the cause, and ends."""
_SECONDS = 1.0
"""The longest time that one trial delays others: its turn may need no step for a while."""


class Trials:
    """The turns on trial now; a trial lasts until its turn is no longer suspected.

    Most turns only shared an engine with the cause. Trials begin one after another, each once there
    is sound of the turn before. A turn that has failed in a trial has the next one alone.
    """

    def __init__(self) -> None:
        self._until: dict[OpenUtterance, float] = {}

    def begins(self, utterance: OpenUtterance, now: float) -> bool:
        """Return whether the turn may be given an engine now; if so, its trial begins."""
        tried = {one: end for one, end in self._until.items() if one.suspected and now < end}
        alone = any(one.failed_trials for one in (utterance, *tried))
        if any((alone or not one.made) and not one.waits for one in tried):
            return False
        self._until = tried | {utterance: now + _SECONDS}
        return True

    def ended(self, utterance: OpenUtterance) -> bool:
        """Record that the turn has no engine any more; return whether that ended a trial."""
        return self._until.pop(utterance, None) is not None and utterance.suspected
