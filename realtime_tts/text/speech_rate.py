"""How fast each voice speaks, learned from what it has spoken.

The durations of `spoken.py` are those of an average speaker. From sentence to sentence the ratio of
true to expected seconds varies by a few percent, between voices by tens: what a voice has spoken
lately tells how fast it goes on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

_LATELY = 60.0
"""Expected seconds of speech that count; older ones fade."""
_SHORTEST = 1.0
"""Shorter texts teach nothing: the silence at both ends is too large a part of them."""
_SLOWEST = 2.0
_VOICES = 1_000


class SpeechRates:
    """The speech rate of each voice: seconds of audio for a second that is expected, 1 if not
    known."""

    def __init__(self) -> None:
        self._heard: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()  # the latest last

    def of(self, voice: Hashable) -> float:
        """The speech rate of a voice, from 1/2 to 2."""
        expected, seconds = self._heard.get(voice, (1.0, 1.0))
        return min(_SLOWEST, max(1 / _SLOWEST, seconds / expected))

    def learn(self, voice: Hashable, expected: float, seconds: float) -> None:
        """A text of `expected` seconds took `seconds`, from its first sound to its last."""
        if expected < _SHORTEST or seconds <= 0:
            return
        before = self._heard.pop(voice, (0.0, 0.0))
        expected, seconds = before[0] + expected, before[1] + seconds
        kept = min(1.0, _LATELY / expected)
        self._heard[voice] = expected * kept, seconds * kept
        if len(self._heard) > _VOICES:
            self._heard.popitem(last=False)
