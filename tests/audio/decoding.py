"""What a listener makes of encoded sound."""

from __future__ import annotations

import io

import numpy as np
import pytest


def decoded(data: bytes) -> tuple[np.ndarray, int]:
    """Samples, and how many a second has, of a file in any container."""
    av = pytest.importorskip("av")
    with av.open(io.BytesIO(data)) as container:
        rate = container.streams.audio[0].rate
        resampler = av.AudioResampler(format="s16", layout="mono", rate=rate)
        frames = [out for frame in container.decode(audio=0) for out in resampler.resample(frame)]
    return np.concatenate([frame.to_ndarray().ravel() for frame in frames]), rate


def pitch(samples: np.ndarray, rate: int) -> float:
    """The strongest frequency, in hertz."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(np.argmax(spectrum) * rate / len(samples))
