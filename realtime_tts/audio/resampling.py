"""Resampler: the engine's samples at another rate, while they come.

soxr's polyphase filter ("HQ", 20 bits) carries its state from piece to piece, so that pieces give
exactly what the whole gives. It needs some sound to come before it can tell a sample: of the
first 80 ms, 61 to 69 leave at once, and the rest follows with later pieces. What comes out is
aligned with what went in: nothing is delayed, only held.
"""

from __future__ import annotations

import numpy as np
import soxr
from numpy.typing import NDArray

_QUALITY = "HQ"


class Resampler:
    """Changes the sample rate of one stream. Feed with `push`, then `finish` once.

    Of n samples in, round(n * to_rate / from_rate) come out.
    """

    def __init__(self, from_rate: int, to_rate: int) -> None:
        # Floats: for integers soxr dithers with a seed of its own, and no two runs are alike.
        self._stream = soxr.ResampleStream(from_rate, to_rate, 1, dtype="float32", quality=_QUALITY)

    def push(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Take `samples` [n]; give what can now be told of the sound at the new rate."""
        out: NDArray[np.float32] = self._stream.resample_chunk(samples)
        return out

    def finish(self) -> NDArray[np.float32]:
        """Give the rest of the sound at the new rate."""
        out: NDArray[np.float32] = self._stream.resample_chunk(
            np.zeros(0, dtype=np.float32), last=True
        )
        return out
