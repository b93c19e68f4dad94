"""Where a text ends in a stop: what a voice says behind it, which nobody wrote.

Behind the closure of "cat", a person lets go of the tongue for a tenth of a second. A voice that
says a third of a second there is heard as "cat though" and, once it learns from itself, keeps it.
"""

from __future__ import annotations

import re

import numpy as np

from tools.demo_voice.codec_trainer import FRAME_SAMPLES, LABELS
from tools.demo_voice.teacher import LABEL_SAMPLES, SAMPLE_RATE

_SILENT, _SOUNDING = -55.0, -50.0
"""Decibels of full scale, of a label: 20 ms."""
_NEAR_END = 32
"""Labels before the last sound, in which the closure is looked for."""
_RELEASE = 8
"""Labels of a release at most."""
_KEPT = 2
"""Labels of the release that are kept at least: it ends with a frame."""
_SOFTER = 8.0
"""Decibels. What is hardly softer than the loudest sound is a syllable."""
_STOP = re.compile(r"([bdkpt]|(?<!n)g)e?\W*$")


def ends_in_stop(text: str) -> bool:
    """Whether the spelling of the last word says that it ends in a stop."""
    return _STOP.search(text.lower()) is not None


def frames_to_keep(samples: np.ndarray) -> int:
    """How many frames of 80 ms of speech that ends in a stop, [N] int16 at 24 kHz, are its text."""
    frames = len(samples) // FRAME_SAMPLES
    levels = _levels(samples[: frames * FRAME_SAMPLES])
    found = _release(levels)
    if found is None or len(levels[found]) <= _RELEASE:
        return frames
    return min(frames, -(-(found.start + _KEPT) // LABELS))


def release_seconds(samples: np.ndarray) -> float | None:
    """How long speech that ends in a stop, [N] int16 at 24 kHz, sounds behind the closure; None if
    there is no closure near its end."""
    whole = len(samples) // LABEL_SAMPLES * LABEL_SAMPLES
    found = _release(_levels(samples[:whole]))
    return None if found is None else (found.stop - found.start) * LABEL_SAMPLES / SAMPLE_RATE


def _release(levels: np.ndarray) -> slice | None:
    """What sounds softly behind the last closure."""
    sounding = np.flatnonzero(levels > _SOUNDING)
    if not len(sounding):
        return None
    last = int(sounding[-1])
    near = max(0, last - _NEAR_END)
    silent = np.flatnonzero(levels[near:last] < _SILENT)
    if not len(silent):
        return None
    first = int(sounding[sounding > near + silent[-1]][0])
    if levels[first : last + 1].max() > levels.max() - _SOFTER:
        return None
    return slice(first, last + 1)


def _levels(samples: np.ndarray) -> np.ndarray:
    """[N / 480] dB of full scale."""
    parts = samples.reshape(-1, LABEL_SAMPLES).astype(np.float64) / 32768
    return 10 * np.log10((parts**2).mean(1) + 1e-12)
