"""Recordings of any sample rate at the model's, by the means of the official package.

That is soxr's HQ filter, called as `librosa.resample` calls it by default: the result has
ceil(n * 24,000 / rate) samples.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import NDArray

from realtime_tts.errors import ConfigError
from realtime_tts.model.config import SAMPLE_RATE


def resampled(samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
    """samples [n] at `rate` Hz -> [ceil(n * 24,000 / rate)] at 24 kHz.

    Raises ConfigError if soxr, which only this needs, is not installed.
    """
    if rate == SAMPLE_RATE:
        return samples
    try:
        import soxr
    except ImportError:
        raise ConfigError(
            f"a recording at {rate} Hz has to be resampled, which needs soxr: "
            'pip install "realtime-tts-server[server]"'
        ) from None
    length = ceil(len(samples) * SAMPLE_RATE / rate)
    found: NDArray[np.float32] = soxr.resample(samples, rate, SAMPLE_RATE, quality="HQ")[:length]
    return np.pad(found, (0, length - len(found)))
