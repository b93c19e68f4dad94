"""Trials: turns that may be the reason why engines fail are given engines apart from each other."""

from __future__ import annotations

from realtime_tts.engine.open_utterance import OpenUtterance

MOST_TRIALS = 3
"""Who fails in so many trials is the reason, and ends."""
_SECONDS = 1.0
"""How long one keeps the others waiting at most: its listener may need nothing for a while."""


class Trials:
    """Who is tried now; a trial lasts until the turn is no longer suspected.

    Most only shared an engine with the reason. They begin one after another, each once there is
    sound of the one before. One that has failed in a trial has the next one alone.
    """

    def __init__(self) -> None:
        self._until: dict[OpenUtterance, float] = {}

    def begins(self, utterance: OpenUtterance, now: float) -> bool:
        """Whether it may be given an engine now; then its trial begins."""
        tried = {one: end for one, end in self._until.items() if one.suspected and now < end}
        alone = any(one.failed_trials for one in (utterance, *tried))
        if any((alone or not one.made) and not one.waits for one in tried):
            return False
        self._until = tried | {utterance: now + _SECONDS}
        return True

    def ended(self, utterance: OpenUtterance) -> bool:
        """It has no engine any more. Whether that ended a trial."""
        return self._until.pop(utterance, None) is not None and utterance.suspected
