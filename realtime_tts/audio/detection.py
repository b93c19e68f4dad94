"""Finds out whether speech has the mark of `marking.py`, however it was cut, and where.

The energy of each band in each cell is compared with its neighbours, which leaves the pattern and
the speech's own changes from one cell to the next. Correlated with the pattern at each offset where
that may begin, the speech's changes add up to a few standard deviations, and the pattern to many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
import soxr
from numpy.typing import NDArray

from realtime_tts.audio.marking import (
    BANDS,
    BINS,
    CELL,
    CELLS,
    FIRST_BIN,
    HOP_SECONDS,
    PATTERN,
    window,
)

THRESHOLD = 6.0
"""Standard deviations from which on speech counts as marked."""
_RATE = 8_000  # in hertz: the mark is below 4 kHz
_HOP = round(HOP_SECONDS * _RATE)
_SPANS = (4.0, 8.0, 16.0, 32.0)
"""Seconds of sound that are searched as one: in each turn the pattern begins anew."""
_QUIET = 1e-4
"""Cells with less than this share of the loudest cell's energy are ignored."""
_MOST_DB = 3.0
"""Decibels by which a cell may differ from its neighbours: more is speech, and is clipped."""

Grid = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Detection:
    """Where the mark is clearest, in seconds, and how clear it is there."""

    score: float
    """How clear the mark is, in standard deviations of speech that is not marked."""
    begins: float
    ends: float

    @property
    def found(self) -> bool:
        return self.score >= THRESHOLD


def detect(samples: NDArray[np.floating], sample_rate: int) -> Detection:
    """Look for the mark in `samples` [n], mono, at any rate from 8,000 Hz."""
    sound = samples.astype(np.float64)
    if sample_rate != _RATE:
        sound = soxr.resample(sound, sample_rate, _RATE, quality="HQ")
    energies = _energies(sound)
    best = Detection(0.0, 0.0, len(sound) / _RATE)
    for begin, end in _spans(len(energies)):
        score = _score(energies[begin:end])
        if score > best.score:
            best = Detection(score, begin * HOP_SECONDS, end * HOP_SECONDS)
    return best


def _energies(sound: NDArray[np.float64]) -> Grid:
    """Return the energy of each band in each window: [windows, BANDS]."""
    if len(sound) < 2 * _HOP:
        return np.zeros((0, BANDS))
    windows = np.lib.stride_tricks.sliding_window_view(sound, 2 * _HOP)[::_HOP]
    spectra = np.abs(np.fft.rfft(windows * window(2 * _HOP))) ** 2
    bands = spectra[:, FIRST_BIN : FIRST_BIN + BINS * BANDS].reshape(len(spectra), BANDS, BINS)
    energies: Grid = bands.sum(axis=2)
    return energies


def _spans(windows: int) -> Iterator[tuple[int, int]]:
    """Yield the beginning and end of each stretch of windows that is searched as one."""
    for seconds in _SPANS:
        size = round(seconds / HOP_SECONDS)
        for begin in range(0, max(1, windows - size // 2), size // 2):
            yield begin, min(windows, begin + size)


def _score(energies: Grid) -> float:
    """Return the best correlation with the pattern, over all offsets where it may begin."""
    best = 0.0
    # With the pattern, not its differences: a sum with random signs is close to normally
    # distributed, whatever has those signs (Hoeffding), so that a score has a probability.
    spectrum = np.fft.fft(PATTERN, axis=0)
    for offset in range(CELL):
        count = (len(energies) - offset) // CELL
        if count < CELLS // 4:
            continue
        cells = energies[offset : offset + count * CELL].reshape(count, CELL, BANDS).sum(axis=1)
        folded = _folded(cells)
        alike = np.fft.ifft((np.fft.fft(folded, axis=0) * spectrum.conj()).sum(axis=1)).real
        best = max(best, float(alike.max()) / sqrt(float((folded**2).sum()) + 1e-9))
    return best


def _folded(cells: Grid) -> Grid:
    """Return how cells differ from their neighbours, summed by their place in the pattern."""
    total = cells.sum(axis=1)
    levels = 10 * np.log10(cells + 1e-12 * total.max() + 1e-30)
    differences = np.clip(_differences(levels), -_MOST_DB, _MOST_DB)
    differences[[0, -1]] = 0.0
    differences *= (total > _QUIET * total.max())[:, None]
    folded = np.zeros((CELLS, BANDS))
    np.add.at(folded, np.arange(len(cells)) % CELLS, differences)
    return folded


def _differences(grid: Grid) -> Grid:
    """Return the differences from the other bands, and from the cells before and behind."""
    level = grid - grid.mean(axis=1, keepdims=True)
    around: Grid = (np.roll(level, 1, axis=0) + np.roll(level, -1, axis=0)) / 2
    differences: Grid = level - around
    return differences
