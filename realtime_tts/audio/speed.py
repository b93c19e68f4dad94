"""Speed: how much faster or slower than it was made speech is played, at the same pitch.

Only `Speed` converts samples as made to samples as played; time_scale.py makes the sound. Light:
the command line imports it where the server's packages are missing.
"""

from __future__ import annotations

from math import ceil

SLOWEST, FASTEST = 0.7, 1.4
"""The range of speeds, beyond which the ear hears what was repeated or left out."""
LOOKAHEAD = 480
"""Samples at 24 kHz (20 ms): the most sound that is held until more arrives, at speeds other than
1."""


def nearest(asked: float) -> float:
    """Return the possible speed that is nearest."""
    return min(FASTEST, max(SLOWEST, asked))


class Speed(float):
    """A speed of speech: the seconds made that are played in one second. 1: as made."""

    @property
    def changes(self) -> bool:
        """Whether the sound that is played differs from the sound made."""
        return float(self) != 1.0

    def played(self, made: int) -> int:
        """Return how many samples are played for `made` samples that were made."""
        return ceil(made / self) if self.changes else made

    def rate(self, sample_rate: int) -> int:
        """Return how many samples as made are played in a second."""
        return round(sample_rate * self)

    @property
    def lookahead(self) -> int:
        """The most samples that are held until more arrive."""
        return LOOKAHEAD if self.changes else 0


AS_MADE = Speed(1)
