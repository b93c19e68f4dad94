"""What a voice is like apart from words and melody: noise, bandwidth, flutter, loudness."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tools.demo_voice.pitch import STEP_SECONDS, Pitch
from tools.demo_voice.recognise import SAMPLE_RATE, Recording

FRAME_RATE = 12.5
"""Frames of the codec in a second. Pitch that is off by another bit in each trembles so fast."""
_HARMONIC_WINDOW = 0.06  # seconds: five periods of the lowest voice
_SEARCH = 0.1  # the period is looked for within 10 % of what F0 says
_SPECTRUM = 1024
_SMOOTHING_HERTZ = 200.0
_BELOW_PEAK = 60.0  # dB
_FLUTTER_POINTS = 512
_SHORTEST_STRETCH = 32  # steps
_START_BELOW_PEAK = 40.0  # dB


def harmonics_to_noise(recording: Recording, pitch: Pitch) -> float:
    """dB, mean over the voiced frames; NaN without one.

    By the autocorrelation at the period, divided by the window's (Boersma 1993, equations 4 and 9).
    """
    samples = recording.resampled(SAMPLE_RATE)
    size = round(_HARMONIC_WINDOW * SAMPLE_RATE)
    window = np.hanning(size)
    of_window = _autocorrelation(window[None])[0]
    padded = np.pad(samples, size // 2)
    found = []
    for step in np.flatnonzero(pitch.voiced):
        at = round(step * STEP_SECONDS * SAMPLE_RATE)
        part = padded[at : at + size]
        if len(part) < size:
            break
        own = _autocorrelation(((part - part.mean()) * window)[None])[0]
        period = SAMPLE_RATE / pitch.hertz[step]
        lags = np.arange(int(period * (1 - _SEARCH)), int(period * (1 + _SEARCH)) + 2)
        likeness = (own[lags] / (own[0] + 1e-12) / of_window[lags] * of_window[0]).max()
        likeness = min(max(likeness, 1e-3), 1 - 1e-4)
        found.append(10 * np.log10(likeness / (1 - likeness)))
    return float(np.mean(found)) if found else float("nan")


def _autocorrelation(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    size = 2 * rows.shape[1]
    spectrum = np.abs(np.fft.rfft(rows, size)) ** 2
    return np.fft.irfft(spectrum, size)[:, : rows.shape[1]]


def bandwidth(recordings: Sequence[Recording]) -> float:
    """Hz: the highest band of 200 Hz whose loud moments (95th percentile) come within 60 dB of the
    loudest band's. All at one sample rate; 0 for silence."""
    rate = recordings[0].sample_rate
    powers = np.concatenate([_powers(recording) for recording in recordings])
    loud = np.percentile(powers, 95, axis=0)
    width = max(1, round(_SMOOTHING_HERTZ * _SPECTRUM / rate))
    smooth = np.convolve(loud, np.ones(width) / width, "same")
    if not smooth.max():
        return 0.0
    enough = smooth > smooth.max() * 10 ** (-_BELOW_PEAK / 10)
    return float(np.flatnonzero(enough)[-1] * rate / _SPECTRUM)


def _powers(recording: Recording) -> NDArray[np.float64]:
    """[T, bins] of Hann windows, half overlapping; one at least."""
    samples = recording.int16() / 32768.0
    samples = np.pad(samples, (0, max(0, _SPECTRUM - len(samples))))
    parts = np.lib.stride_tricks.sliding_window_view(samples, _SPECTRUM)[:: _SPECTRUM // 2]
    powers: NDArray[np.float64] = np.abs(np.fft.rfft(parts * np.hanning(_SPECTRUM))) ** 2
    return powers


def flutter(pitches: Sequence[Pitch]) -> float:
    """dB by which the pitch moves more at the frame rate (within 2 Hz) than at that of syllables (3
    to 8 Hz): the median over all voiced stretches of 0.32 s and more, less their straight lines.

    The teacher has about -12. NaN without a stretch.
    """
    rates = np.fft.rfftfreq(_FLUTTER_POINTS, STEP_SECONDS)
    at_rate = np.abs(rates - FRAME_RATE) <= 2
    of_syllables = (rates > 3) & (rates < 8)
    found = []
    for tones in (stretch for pitch in pitches for stretch in _stretches(pitch)):
        at = np.arange(len(tones))
        level = tones - np.polyval(np.polyfit(at, tones, 1), at)
        power = np.abs(np.fft.rfft(level * np.hanning(len(tones)), _FLUTTER_POINTS)) ** 2 + 1e-9
        found.append(10 * np.log10(power[at_rate].mean() / power[of_syllables].mean()))
    return float(np.median(found)) if found else float("nan")


def _stretches(pitch: Pitch) -> list[NDArray[np.float64]]:
    """Semitones of what is voiced without a break for long enough."""
    changes = np.flatnonzero(np.diff(np.concatenate([[False], pitch.voiced, [False]])))
    tones = pitch.semitones()
    return [
        tones[begin : min(end, begin + _FLUTTER_POINTS)]
        for begin, end in changes.reshape(-1, 2)
        if end - begin >= _SHORTEST_STRETCH
    ]


def loudness(recordings: Sequence[Recording]) -> float:
    """LUFS (ITU-R BS.1770-4, gated) of all recordings, one after the other, at one sample rate.
    Raises ImportError without pyloudnorm."""
    try:
        import pyloudnorm
    except ImportError as error:
        raise ImportError("loudness needs pyloudnorm: pip install -e '.[demo-voice]'") from error
    samples = np.concatenate([recording.int16() / 32768.0 for recording in recordings])
    found: float = pyloudnorm.Meter(recordings[0].sample_rate).integrated_loudness(samples)
    return found


def silence_before(recording: Recording) -> float:
    """Seconds until the level of 5 ms comes within 40 dB of the loudest; the whole for silence."""
    size = recording.sample_rate // 200
    samples = recording.int16()[: len(recording.samples) // size * size] / 32768.0
    levels = (samples.reshape(-1, size) ** 2).mean(axis=1)
    if not levels.any():
        return recording.seconds
    first = int(np.argmax(levels > levels.max() * 10 ** (-_START_BELOW_PEAK / 10)))
    return first * size / recording.sample_rate
