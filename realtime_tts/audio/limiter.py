"""A limiter: no peak of the sound, nor any between samples, is above a ceiling.

True peaks are those of the wave that the samples stand for: ITU-R BS.1770-5, annex 2, finds them in
four times as many samples. The gain falls in a straight line over the 20 samples before a peak, and
comes back over the next periods of a voice: to stay down for longer would cost more loudness.
"""

from __future__ import annotations

from math import exp

import numpy as np
from numpy.typing import NDArray

from realtime_tts.audio.formats import ENGINE_RATE

Wave = NDArray[np.float32]

_BLOCK = 20
"""Samples of a block, which has one peak and over which the gain changes in a straight line."""
_REACH = 6
"""Samples on either side from which a value between two samples is computed."""
HELD_SAMPLES = 2 * _BLOCK - 1 + _REACH
"""The most samples that are held until more arrive: 1.9 ms."""
_RELEASE = 1 - exp(-_BLOCK / ENGINE_RATE / 0.02)  # of what is missing from 1; 20 ms
_AS_GOOD_AS_ONE = 0.9999
_BETWEEN = (0.25, 0.5, 0.75)  # where values between two samples are looked at


def _weights(place: float) -> Wave:
    """Return the weights of the samples around, for the value at `place` between two of them: a
    windowed sinc."""
    distance = np.arange(1 - _REACH, _REACH + 1) - place
    window = np.cos(np.pi / 2 * distance / (_REACH + 0.5)) ** 2
    weights = np.sinc(distance) * window
    scaled: Wave = (weights / weights.sum()).astype(np.float32)
    return scaled


_FILTERS = [_weights(place) for place in _BETWEEN]
_MOST = max(float(np.abs(weights).sum()) for weights in _FILTERS)
"""The most times that a value between samples can exceed the largest sample around it."""


class Limiter:
    """Limits the peaks of a stream. Feed with `push`, then `finish` once. Pieces give what the
    whole gives, bit for bit, and as many samples come out as went in; at most `HELD_SAMPLES` wait.

    `ceiling`: the highest peak; 1 is full scale.
    """

    def __init__(self, ceiling: float) -> None:
        self._ceiling = ceiling
        # Sound not returned yet, behind as much of the past as a filter needs: silence at first.
        self._sound: Wave = np.zeros(_REACH, dtype=np.float32)
        self._gains: list[float] = []  # that blocks not yet returned need, as far as is known
        self._gain = 1.0  # where the next block begins

    def push(self, samples: Wave) -> Wave:
        """Take `samples` [n]; return those whose gain is known."""
        self._sound = np.concatenate([self._sound, samples])
        known = (len(self._sound) - 2 * _REACH) // _BLOCK
        if known > len(self._gains):
            self._gains += self._needed(len(self._gains), known)
        return self._give(len(self._gains) - 1)

    def finish(self) -> Wave:
        """Return the rest."""
        left = len(self._sound) - _REACH
        return self.push(np.zeros(HELD_SAMPLES + 1, dtype=np.float32))[:left]

    def _needed(self, first: int, end: int) -> list[float]:
        """Return the gains by which blocks from `first` to `end` stay below the ceiling."""
        around = self._sound[first * _BLOCK : end * _BLOCK + 2 * _REACH]
        if float(np.abs(around).max()) * _MOST <= self._ceiling:
            return [1.0] * (end - first)
        size = (end - first) * _BLOCK
        largest = np.abs(around[_REACH:][:size])
        for weights in _FILTERS:
            between = np.zeros(size, dtype=np.float32)
            for at, weight in enumerate(weights, 1):  # not a product of sums: those are not exact
                between += weight * around[at:][:size]
            np.maximum(largest, np.abs(between), out=largest)
        peaks = largest.reshape(-1, _BLOCK).max(axis=1).tolist()
        return [min(1.0, self._ceiling / peak) if peak else 1.0 for peak in peaks]

    def _give(self, blocks: int) -> Wave:
        """Return the next blocks, with their gain; that of the block behind must be known."""
        if blocks <= 0:
            return np.zeros(0, dtype=np.float32)
        size = blocks * _BLOCK
        given = self._sound[_REACH:][:size]
        gains, self._gains = self._gains[: blocks + 1], self._gains[blocks:]
        self._sound = self._sound[size:]
        if self._gain == 1.0 and min(gains) == 1.0:
            return given
        self._gain = min(self._gain, gains[0])  # for the very first block
        ends = np.array(self._ends(gains), dtype=np.float32)[:, None]
        ramp = np.arange(_BLOCK, dtype=np.float32) / np.float32(_BLOCK)
        lines = ends[:-1] + (ends[1:] - ends[:-1]) * ramp
        return given * lines.reshape(-1)

    def _ends(self, gains: list[float]) -> list[float]:
        """Return the gain where each block begins, and behind the last."""
        ends = [self._gain]
        for here, following in zip(gains, gains[1:], strict=False):
            back = self._gain + (1.0 - self._gain) * _RELEASE
            free = 1.0 if back > _AS_GOOD_AS_ONE else back
            self._gain = min(free, here, following)
            ends.append(self._gain)
        return ends
