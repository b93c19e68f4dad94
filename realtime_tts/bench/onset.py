"""Finds the first sample of speech that can be heard.

A model may begin with silence, which makes the first packet fast and the listener wait.
"""

from __future__ import annotations

import sys
from array import array

AUDIBLE_DBFS = -45.0
_THRESHOLD = round(32_768 * 10 ** (AUDIBLE_DBFS / 20))


class Onset:
    """Fed with the packets of a turn. Costs nothing once the onset is found."""

    def __init__(self) -> None:
        self.sample: int | None = None
        """Position of the first sample above -45 dBFS in the turn; None while there is none."""
        self._seen = 0

    def feed(self, packet: bytes) -> None:
        """The next packet, s16le."""
        if self.sample is not None:
            return
        samples = array("h", packet)
        if sys.byteorder == "big":
            samples.byteswap()
        # max and min look at 2,048 samples in 30 us; only one packet a turn is looked at closer.
        if samples and (max(samples) > _THRESHOLD or min(samples) < -_THRESHOLD):
            offset = next(i for i, sample in enumerate(samples) if abs(sample) > _THRESHOLD)
            self.sample = self._seen + offset
        self._seen += len(samples)
