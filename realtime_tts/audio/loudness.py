"""Brings every voice and turn to -16 LUFS, by a slow gain and a limiter of true peaks.

Loudness is that of ITU-R BS.1770-5: K-weighted energy in blocks of 400 ms that overlap by three
quarters, gated at -70 LUFS and at 10 LU below what the others have. The gain at any moment depends
only on earlier sound, so that nothing waits for it. A voice's next turn begins with what was
learned of the voice (`VoiceLevels`).

Sound is counted as loud as the limiter leaves it, without the gain: a voice with high peaks, of
which the limiter takes a decibel or two, gets so much more gain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from realtime_tts.audio.formats import ENGINE_RATE
from realtime_tts.audio.limiter import Limiter
from realtime_tts.audio.pcm import from_s16le, to_s16le
from realtime_tts.recent import Recent

TARGET_LUFS = -16.0
CEILING_DBTP = -1.0
_MARGIN_DB = 0.5  # for what four times as many samples do not show
HIGHEST_PEAK = 10 ** ((CEILING_DBTP - _MARGIN_DB) / 20)
"""The limiter's ceiling, as a share of full scale."""
_UNKNOWN_LUFS = -20.0
"""Assumed loudness of an unknown voice: rather loud, since too loud is worse than too soft."""
_DOUBT, _MOST_DOUBT_DB = 3, 3.0
"""The assumption counts as much as so many blocks, and for no more than so much: a first syllable
is often far louder or softer than its sentence, but a voice may be far from what is assumed."""
_MOST_DB = 30.0
"""The most gain, either way: with more, the noise of very soft sound would be heard."""
_LEAST_LEFT = 10 ** (-3.0 / 10)
"""Share of a step's energy that counts even if the limiter takes more: sound that is nothing but
peaks never gets louder, however high the gain."""

_STEP = ENGINE_RATE // 10
"""Samples (100 ms) between two measurements, over which the gain changes in a line."""
_STEPS = 4  # in a block of 400 ms
_FIRST_STEPS = 2  # in the first block of a stream, which is as soft as its first syllable begins
_FAST_DB, _SLOW_DB = 6.0, 0.3
"""The most change of the gain in a step, while little of the voice was heard, and later."""
_FAR = 4
"""A later step may also correct 1/`_FAR` of what is missing, if that is more than `_SLOW_DB`."""
_LEARNT = 10
"""Blocks after which the gain changes slowly."""
_PRIOR = 30
"""The most blocks that earlier turns count for, besides those of the turn itself."""
_ENOUGH = 600
"""Blocks of a voice after which its level stays as it is, so that its turns all begin alike."""
_VOICES = 1_000

_LOWEST, _WIDTH = -70.0, 0.1  # LUFS; of the absolute gate, and of a class of blocks
_CLASSES = 750
_LEVELS = _LOWEST + _WIDTH * (np.arange(_CLASSES) + 0.5)
_ENERGIES = 10.0 ** (_LEVELS / 10)

Counts = NDArray[np.float64]
"""Number of blocks at each of `_LEVELS`."""


def _k_weights() -> NDArray[np.float64]:
    """Return the weight of each frequency of a step: BS.1770's two filters, before sampling."""
    s = 2j * np.pi * np.fft.rfftfreq(_STEP, 1 / ENGINE_RATE)
    shelf_at, low_at = 2 * np.pi * 1_681.974, 2 * np.pi * 38.135
    high, q = 10 ** (3.99984 / 20), 0.7071752
    middle = high**0.4996668
    shelf = (high * s**2 + middle * shelf_at / q * s + shelf_at**2) / (
        s**2 + shelf_at / q * s + shelf_at**2
    )
    low = s**2 / (s**2 + low_at / 0.5003270 * s + low_at**2)
    power = np.abs(shelf * low) ** 2 * 2 / _STEP**2  # both halves of the spectrum; Parseval
    weights: NDArray[np.float64] = 10**-0.0691 * power
    return weights


_K_WEIGHTS = _k_weights()


def _integrated(counts: Counts) -> float | None:
    """Return the loudness in LUFS of the blocks counted at each level; None without blocks."""
    blocks = counts.sum()
    if blocks == 0:
        return None
    gate = 10 * np.log10((counts * _ENERGIES).sum() / blocks) - 10
    kept = np.where(gate <= _LEVELS, counts, 0.0)
    return float(10 * np.log10((kept * _ENERGIES).sum() / kept.sum()))


class VoiceLevels:
    """The loudness of each voice without gain: blocks of its turns, counted by their level."""

    def __init__(self) -> None:
        self._counts: Recent[Hashable, Counts] = Recent(_VOICES)

    def of(self, voice: Hashable) -> Counts:
        """Return the counts of a voice, which all callers share and add to."""
        counts = self._counts.get(voice)
        self._counts[voice] = counts = np.zeros(_CLASSES) if counts is None else counts
        return counts


class Loudness:
    """Brings one stream to `TARGET_LUFS`. Feed with `push`, then `finish` once; takes and returns
    whole samples (s16le, 24 kHz, mono).

    Pieces give what the whole gives, bit for bit, and as many samples come out as went in; at most
    `limiter.HELD_SAMPLES` wait. `heard`: the voice's counts, from `VoiceLevels`, to which those of
    the stream are added.
    """

    def __init__(self, heard: Counts) -> None:
        self._heard = heard
        self._counts: Counts | None = None  # of the voice's earlier turns, and of the stream so far
        self._limiter = Limiter(HIGHEST_PEAK)
        self._step = np.zeros(_STEP)  # samples of the step that were received
        self._received = 0
        self._limited = np.zeros(_STEP, dtype=np.float32)  # the latest that the limiter returned
        self._latest: deque[float] = deque(maxlen=_STEPS)  # energies of steps
        self._gain = 0.0  # dB, at the end of the step
        self._line = np.zeros(0, dtype=np.float32)  # gain of each sample of the step

    def push(self, pcm: bytes) -> bytes:
        """Take more of the stream; return what is ready."""
        if not pcm:
            return b""
        samples = from_s16le(pcm)
        if self._counts is None:
            self._begin()
        made = []
        at = 0
        while at < len(samples):
            taken = samples[at : at + _STEP - self._received]
            line = self._line[self._received :][: len(taken)]
            made.append(self._limiter.push(taken * line))
            self._limited = np.concatenate([self._limited, made[-1]])[-_STEP:]
            self._step[self._received :][: len(taken)] = taken
            self._received += len(taken)
            at += len(taken)
            if self._received == _STEP:
                self._measure()
                self._next_line()
        return to_s16le(np.concatenate(made))

    def finish(self) -> bytes:
        """Return the rest."""
        return to_s16le(self._limiter.finish())

    def _begin(self) -> None:
        """Begin with what is known of the voice by now."""
        blocks = self._heard.sum()
        self._counts = self._heard * min(1.0, _PRIOR / blocks) if blocks else self._heard.copy()
        self._gain = self._wanted()
        self._line = np.full(_STEP, 10 ** (self._gain / 20), dtype=np.float32)

    def _measure(self) -> None:
        """Count the block that ends with the step. The stream's first two blocks are shorter.

        What the limiter returned is 40 samples behind, during which the gain hardly changes."""
        spectrum = np.fft.rfft([self._step, self._limited / self._line])
        power = spectrum.real**2 + spectrum.imag**2
        came, left = (power @ _K_WEIGHTS).tolist()
        self._latest.append(max(left, came * _LEAST_LEFT))
        self._received = 0
        if len(self._latest) < _FIRST_STEPS:
            return
        energy = sum(self._latest) / len(self._latest)
        level = int((10 * np.log10(max(energy, 1e-12)) - _LOWEST) / _WIDTH)
        if level < 0:
            return
        level = min(level, _CLASSES - 1)
        assert self._counts is not None, "begun"
        self._counts[level] += 1
        if self._heard.sum() < _ENOUGH:
            self._heard[level] += 1

    def _next_line(self) -> None:
        assert self._counts is not None, "begun"
        before, missing = self._gain, self._wanted() - self._gain
        slow = max(_SLOW_DB, abs(missing) / _FAR)
        most = _FAST_DB if self._counts.sum() < _LEARNT else slow
        self._gain = before + min(most, max(-most, missing))
        decibels = np.linspace(before, self._gain, _STEP)
        self._line = np.exp(decibels * (np.log(10) / 20)).astype(np.float32)

    def _wanted(self) -> float:
        assert self._counts is not None, "begun"
        level = _integrated(self._counts)
        level = _UNKNOWN_LUFS if level is None else level
        doubt = min(_MOST_DOUBT_DB, max(-_MOST_DOUBT_DB, _UNKNOWN_LUFS - level))
        level += doubt * _DOUBT / (_DOUBT + float(self._counts.sum()))
        return min(_MOST_DB, max(-_MOST_DB, TARGET_LUFS - level))
