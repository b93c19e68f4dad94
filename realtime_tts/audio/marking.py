"""A watermark that marks speech as synthetic, by a pattern in its spectrum.

Between 300 and 3,300 Hz, bands of 200 Hz are made louder or softer by 0.6 decibels, for 15 ms at
a time, by a pattern that is public. The ear does not hear it, since speech changes by far more;
over some seconds, `detection.py` finds it, behind a telephone or a codec as well. Patterns in time
and frequency for this: Kirovski and Malvar, "Spread-spectrum watermarking of audio signals", IEEE
Transactions on Signal Processing 51(4), 2003.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from realtime_tts.audio.formats import ENGINE_RATE
from realtime_tts.audio.pcm import from_s16le, to_s16le

HOP_SECONDS = 0.005
"""Seconds between windows, which are twice as long, so that bins are 100 Hz wide."""
FIRST_BIN, BINS, BANDS = 3, 2, 15
"""The bin where the bands begin, the bins of each band, and the number of bands."""
CELL = 3
"""Windows of a cell, in which a band stays louder or softer."""
CELLS = 128
"""Cells of the pattern, which begins again every 1.92 s."""
_DECIBELS = 0.6

_HOP = round(HOP_SECONDS * ENGINE_RATE)
_WINDOW = 2 * _HOP
HELD_SAMPLES = _WINDOW - 1
"""The most samples that are held until more arrive: 10 ms."""


def window(length: int) -> NDArray[np.float32]:
    """Return the weights of sound before its spectrum is taken, and again behind it: [length]."""
    return np.sin(np.pi * (np.arange(length) + 0.5) / length).astype(np.float32)


def _pattern() -> NDArray[np.float64]:
    # Not NumPy's generator, which may change from version to version.
    bits = hashlib.shake_256(b"realtime-tts: this speech is synthetic").digest(CELLS * BANDS // 8)
    signs = np.unpackbits(np.frombuffer(bits, np.uint8)).astype(np.float64) * 2 - 1
    return signs.reshape(CELLS, BANDS)


PATTERN = _pattern()
"""[CELLS, BANDS]: 1 where a band is louder, -1 where it is softer."""

_WEIGHTS = window(_WINDOW)
_BANDS = slice(FIRST_BIN, FIRST_BIN + BINS * BANDS)
_CHANGES = (10 ** (_DECIBELS / 20 * PATTERN) - 1).repeat(CELL, axis=0).repeat(BINS, axis=1)
"""The share of each bin that is added to it, window by window."""


class Marking:
    """Marks one stream. Feed with `push`, then `finish` once; takes and returns whole samples
    (s16le, 24 kHz, mono).

    Pieces give what the whole gives, bit for bit, and as many samples come out as went in; at most
    `HELD_SAMPLES` wait.
    """

    def __init__(self) -> None:
        # The first window begins one hop before the sound, so that all sound is in two of them.
        self._sound = np.zeros(_HOP, dtype=np.float32)
        self._added = np.zeros(_HOP, dtype=np.float32)  # to its beginning, by the last window
        self._windows = 0
        self._before = _HOP  # samples before the stream that must still be left out

    def push(self, pcm: bytes) -> bytes:
        """Take more of the stream; return what is ready."""
        return to_s16le(self._push(from_s16le(pcm))) if pcm else b""

    def finish(self) -> bytes:
        """Return the rest."""
        left = len(self._sound) - self._before
        return to_s16le(self._push(np.zeros(_WINDOW, dtype=np.float32))[:left])

    def _push(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        self._sound = np.concatenate([self._sound, samples])
        count = (len(self._sound) - _HOP) // _HOP
        if count == 0:
            return self._sound[:0]
        size = count * _HOP
        added = self._change(self._sound[: size + _HOP], count)
        marked: NDArray[np.float32] = self._sound[:size] + added
        self._sound = self._sound[size:]
        marked = marked[self._before :]
        self._before = 0
        return marked

    def _change(self, sound: NDArray[np.float32], count: int) -> NDArray[np.float32]:
        """Return what `count` windows add to the sound, up to where the last overlaps with the
        next."""
        windows = np.lib.stride_tricks.sliding_window_view(sound, _WINDOW)[::_HOP]
        spectra = np.fft.rfft(windows * _WEIGHTS)
        changes = np.zeros_like(spectra)
        rows = (self._windows + np.arange(count)) % len(_CHANGES)
        changes[:, _BANDS] = spectra[:, _BANDS] * _CHANGES[rows]
        self._windows += count
        waves = (np.fft.irfft(changes, _WINDOW) * _WEIGHTS).astype(np.float32)
        ends = np.concatenate([self._added[None], waves[:, _HOP:]])
        self._added = ends[-1]
        added: NDArray[np.float32] = (waves[:, :_HOP] + ends[:-1]).reshape(-1)
        return added
