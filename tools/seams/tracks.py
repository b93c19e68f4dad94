"""Measures pitch and loudness of speech every 10 ms.

Pitch is the lag of the highest normalised autocorrelation, with the shortest of nearly as good
lags taken (Boersma, "Accurate short-term analysis of the fundamental frequency", 1993, without
its path search: medians over many frames are all that is used).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tools.demo_voice.recognise import Recording

HOP = 0.01
_RATE = 8_000
_WINDOW = 400  # samples: 50 ms
_LOWEST, _HIGHEST = 60.0, 400.0
_VOICED = 0.6
_NEARLY = 0.9  # of the best lag: a multiple of the period correlates as well
_BELOW_LOUD_DB = 35.0
_FLOOR = 1e-5


@dataclass(frozen=True, slots=True, eq=False)
class Tracks:
    """Tracks with a value every 10 ms: `pitch` [N] in semitones above 100 Hz, NaN where there is no
    voice; `level` [N] in dB; `silent` [N], at least 35 dB below the loudest twentieth."""

    pitch: NDArray[np.float64]
    level: NDArray[np.float64]
    silent: NDArray[np.bool_]

    @classmethod
    def of(cls, recording: Recording) -> Tracks:
        samples = recording.resampled(_RATE)
        hop, half = round(HOP * _RATE), _WINDOW // 2
        padded = np.concatenate((np.zeros(half), samples, np.zeros(half)))
        frames = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::hop]
        near = frames[:, half - hop : half + hop]
        level = 20 * np.log10(np.sqrt((near**2).mean(1)) + _FLOOR)
        silent = level < np.percentile(level, 95) - _BELOW_LOUD_DB
        return cls(np.where(silent, np.nan, _pitch(frames)), level, silent)


def _pitch(frames: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the pitch [N] of frames [N, window], in semitones above 100 Hz."""
    window = np.hanning(_WINDOW)
    shaped = (frames - frames.mean(1, keepdims=True)) * window
    own = _autocorrelation(window[None])
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = _autocorrelation(shaped)
        normal = correlation / np.maximum(correlation[:, :1], 1e-12) / (own / own[:, :1])
    low, high = int(_RATE / _HIGHEST), int(_RATE / _LOWEST)
    inside = normal[:, low : high + 1]
    best = inside.max(1)
    peaks = np.zeros_like(inside, bool)
    peaks[:, 1:-1] = (inside[:, 1:-1] >= inside[:, :-2]) & (inside[:, 1:-1] >= inside[:, 2:])
    good = peaks & (inside >= _NEARLY * best[:, None])
    lag = low + good.argmax(1)
    rows = np.arange(len(lag))
    before, at, after = normal[rows, lag - 1], normal[rows, lag], normal[rows, lag + 1]
    bend = before - 2 * at + after
    voiced = good.any(1) & (best > _VOICED)
    bent = np.where(voiced & (bend < 0), bend, -np.inf)  # no bend, no correction
    fine = lag + (before - after) / (2 * bent)
    return np.where(voiced, 12 * np.log2(_RATE / fine / 100), np.nan)


def _autocorrelation(frames: NDArray[np.float64]) -> NDArray[np.float64]:
    spectrum = np.fft.rfft(frames, 2 * _WINDOW)
    return np.fft.irfft(np.abs(spectrum) ** 2)[:, : _WINDOW // 2]
