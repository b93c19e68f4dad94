"""Which moment of one recording says what a moment of another says: dynamic time warping."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tools.demo_voice.pictures import mel_decibels
from tools.demo_voice.recognise import Recording

_COEFFICIENTS = 13


def align(one: Recording, other: Recording) -> NDArray[np.intp]:
    """Pairs of 10 ms steps [P, 2] of the two that sound alike, in order, from both beginnings to
    both ends. Loudness and the colour of the voice do not count."""
    first, second = cepstra(one), cepstra(other)
    distances = np.linalg.norm(first[:, None] - second[None], axis=2)
    return cheapest_path(distances)


def cepstra(recording: Recording) -> NDArray[np.float64]:
    """Mel cepstral coefficients 1 to 12 [T, 12], each with mean 0 and deviation 1."""
    from scipy.fft import dct

    mels = mel_decibels(recording).astype(np.float64)
    found = dct(mels, axis=0, norm="ortho")[1:_COEFFICIENTS].T
    scaled: NDArray[np.float64] = (found - found.mean(0)) / (found.std(0) + 1e-9)
    return scaled


def cheapest_path(distances: NDArray[np.float64]) -> NDArray[np.intp]:
    """The cells [P, 2] of `distances` [N, M] from (0, 0) to (N - 1, M - 1) whose sum is smallest,
    by steps of one down, right or both (Sakoe and Chiba 1978). Worked out a diagonal at a time."""
    rows, columns = distances.shape
    total = np.full((rows + 1, columns + 1), np.inf)
    total[0, 0] = 0.0
    for diagonal in range(rows + columns - 1):
        row = np.arange(max(0, diagonal - columns + 1), min(rows, diagonal + 1))
        column = diagonal - row
        before = np.minimum(total[row, column], total[row, column + 1])
        before = np.minimum(before, total[row + 1, column])
        total[row + 1, column + 1] = distances[row, column] + before
    return _way_back(total)


def _way_back(total: NDArray[np.float64]) -> NDArray[np.intp]:
    row, column = total.shape[0] - 1, total.shape[1] - 1
    path = []
    while row and column:
        path.append((row - 1, column - 1))
        ways = ((row - 1, column - 1), (row - 1, column), (row, column - 1))
        row, column = min(ways, key=lambda cell: total[cell])
    return np.array(path[::-1], np.intp)
