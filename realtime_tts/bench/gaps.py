"""The gaps that a listener hears who plays packets as they come, and where in the text they fall.

Whether a gap cuts a word is judged from the sound at its two edges, because the times of words are
estimates: speech up to the gap and again right behind it was cut, wherever the word is thought to
be. A gap between two words that are spoken without a pause counts as well; it is heard the same.
The demo voice's pauses lie 40 dB and more below its speech, the closures of its consonants (as in
"hap-pen") 20 to 35 dB, so that a cut in a closure is mostly seen, too.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from operator import mul

from tts_scheduler.playback import Playback
from tts_scheduler.report import percentile

_RATE = 24_000
_EDGE = round(0.04 * _RATE)
_SPEECH_SHARE = 0.9
"""The turn's level is what so much of its sound stays below, in pieces as long as an edge."""
_QUIETER = 10 ** (-35 / 20)
"""An edge holds speech if it is less than 35 dB below that."""
_ABOUT = 0.3
"""Seconds by which the time of a word is often wrong."""
_CLAUSE_ENDS = ".,;:!?…—。，！？；："
_CLOSING = "\"'”’)]"


@dataclass(frozen=True, slots=True)
class Gap:
    """`at`: seconds of the turn's sound before it; `began`: when, on the clock of the packets."""

    at: float
    began: float
    seconds: float

    @property
    def ended(self) -> float:
        """When sound came again."""
        return self.began + self.seconds


def find_gaps(packets: Sequence[tuple[float, int]]) -> list[Gap]:
    """Play pairs of (when it came, samples) without any buffer, and note when nothing was left."""
    playback, found = Playback(_RATE), []
    for at, samples in packets:
        before = playback.sent_seconds
        if (late := playback.sent(samples, at)) > 0:
            found.append(Gap(before, at - late, late))
    return found


class Sound:
    """The sound of a turn, mono s16le at 24 kHz, and its own level."""

    def __init__(self, pcm: bytes) -> None:
        self._samples = array("h", pcm)
        if sys.byteorder == "big":
            self._samples.byteswap()
        levels = [self._level(at) for at in range(0, len(self._samples), _EDGE)]
        self._speech = percentile(levels, _SPEECH_SHARE) * _QUIETER if levels else inf

    def cut_at(self, seconds: float) -> bool:
        """Whether there is speech on both sides of this position, 40 ms each."""
        at = round(seconds * _RATE)
        return min(self._level(at - _EDGE), self._level(at)) > self._speech

    def _level(self, begin: int) -> float:
        """The root mean square of the samples from here on that make an edge."""
        part = self._samples[max(begin, 0) : max(begin, 0) + _EDGE]
        return float((sum(map(mul, part, part)) / len(part)) ** 0.5) if part else 0.0


class SpokenWords:
    """The words of a turn, with the white space before them, and when they end in its sound."""

    def __init__(self, words: Sequence[tuple[str, float]]) -> None:
        self._ends = [end for _, end in words]
        self._texts = [text for text, _ in words]
        self._chars = list(accumulate(len(text) for text, _ in words))

    def before(self, seconds: float, *, cut: bool) -> int:
        """How many words end before this position.

        A gap that cuts nothing falls between two words, and is taken to be at the nearest end of
        one; if a clause ends about there, at its end: the times are no better than that.
        """
        if cut:
            return bisect_right(self._ends, seconds)
        away = [abs(seconds - end) for end in (0.0, *self._ends)]
        near = [number for number, far in enumerate(away) if far <= _ABOUT]
        clauses = [number for number in near if self.ends_clause(number)]
        return min(clauses or range(len(away)), key=lambda number: away[number])

    def ends_clause(self, number: int) -> bool:
        """Whether a speaker may breathe behind so many words."""
        if number == 0:
            return True
        return self._texts[number - 1].rstrip().rstrip(_CLOSING).endswith(tuple(_CLAUSE_ENDS))

    def known(self, text: str) -> int:
        """How many words are whole in this beginning of the turn's text: others follow, or a mark
        ends them."""
        number = bisect_right(self._chars, len(text))
        if number and self._chars[number - 1] == len(text) and not self.ends_clause(number):
            return number - 1
        return number

    def written_at(self, number: int, deltas: Sequence[tuple[float, str]]) -> float:
        """When word `number` was known to be whole, by `deltas`: pairs of (when sent, text)."""
        text = ""
        for at, delta in deltas:
            text += delta
            if self.known(text) > number:
                return at
        return deltas[-1][0]
