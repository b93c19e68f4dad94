"""Log-mel spectrogram of a reference recording, as the official package computes it.

24 kHz mono, windows of 1024 samples (periodic Hann) every 256, no centring but 384 reflected
samples at both ends, magnitude, 128 Slaney mel bands from 0 to 12 kHz, natural logarithm.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from realtime_tts.model.config import SAMPLE_RATE

WINDOW = 1024
HOP = 256
_PADDING = (WINDOW - HOP) // 2
_FLOOR = 1e-5
_TINY = 1e-9
"""Added to the squared magnitude, where its root would have no slope."""

# Slaney's mel scale: linear to 1 kHz, logarithmic above (Auditory Toolbox, 1998).
_HZ_PER_MEL = 200 / 3
_KNEE_HZ = 1000.0
_KNEE_MEL = _KNEE_HZ / _HZ_PER_MEL
_LOG_STEP = np.log(6.4) / 27


def log_mel(samples: Tensor, bands: int) -> Tensor:
    """samples [n] at 24 kHz, n > 384 -> [bands, 1 + (n - 256) // 256] float32."""
    padded = F.pad(samples[None], (_PADDING, _PADDING), mode="reflect")[0]
    window = torch.hann_window(WINDOW, device=samples.device)
    spectrum = torch.stft(
        padded, WINDOW, HOP, WINDOW, window=window, center=False, return_complex=True
    )
    magnitude = torch.sqrt(torch.view_as_real(spectrum).pow(2).sum(-1) + _TINY)
    filters = torch.from_numpy(mel_filters(bands)).to(samples.device)
    return torch.log((filters @ magnitude).clamp(min=_FLOOR))


@cache
def mel_filters(bands: int) -> NDArray[np.float32]:
    """Triangles [bands, 513] of equal area on Slaney's scale, from 0 Hz to half the sample rate."""
    bins = np.fft.rfftfreq(WINDOW, 1 / SAMPLE_RATE)
    edges = _hz(np.linspace(0, _mel(SAMPLE_RATE / 2), bands + 2))
    distance = edges[:, None] - bins[None]
    width = np.diff(edges)[:, None]
    rising, falling = -distance[:-2] / width[:-1], distance[2:] / width[1:]
    triangles = np.maximum(0, np.minimum(rising, falling))
    area = 2 / (edges[2:] - edges[:-2])
    filters: NDArray[np.float32] = (triangles * area[:, None]).astype(np.float32)
    return filters


def _mel(hz: float) -> float:
    assert hz >= _KNEE_HZ, "only asked for the upper end"
    return float(_KNEE_MEL + np.log(hz / _KNEE_HZ) / _LOG_STEP)


def _hz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    above = _KNEE_HZ * np.exp(_LOG_STEP * (mel - _KNEE_MEL))
    return np.where(mel < _KNEE_MEL, mel * _HZ_PER_MEL, above)
