"""Speed: how much faster or slower than it was made speech is played, at the same pitch.

`Speed` converts samples that were made to samples that are played, and is the only place that does;
time_scale.py makes the sound. Light: the command line imports it where the server's packages are
missing.
"""

from __future__ import annotations

from math import ceil

SLOWEST, FASTEST = 0.7, 1.4
"""Beyond these the ear hears what was repeated or left out."""
LOOKAHEAD = 480
"""Samples at 24 kHz (20 ms): the most of what was made that waits for more, at other speeds than
1."""


class Speed(float):
    """How many seconds that were made are played in one second. 1: as they were made."""

    @property
    def changes(self) -> bool:
        """Whether what is played is not just what was made."""
        return float(self) != 1.0

    def played(self, made: int) -> int:
        """How many samples so many that were made are when played."""
        return ceil(made / self) if self.changes else made

    def rate(self, sample_rate: int) -> int:
        """Samples that were made and are played in a second."""
        return round(sample_rate * self)

    @property
    def lookahead(self) -> int:
        """The most of what was made that waits for more."""
        return LOOKAHEAD if self.changes else 0


AS_MADE = Speed(1)
