"""Mel spectrograms on the device."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class MelSpectrogram(nn.Module):
    """Natural logarithm of mel magnitudes, [B, N] -> [B, mels, N / hop + 1] (HTK scale)."""

    window: Tensor
    bank: Tensor

    def __init__(self, rate: int, size: int, hop: int, mels: int):
        super().__init__()
        self.size, self.hop = size, hop
        self.register_buffer("window", torch.hann_window(size), persistent=False)
        self.register_buffer("bank", _bank(rate, size, mels), persistent=False)

    def forward(self, samples: Tensor) -> Tensor:
        return (self.bank @ magnitudes(samples, self.window, self.hop)).clamp(min=1e-5).log()


def magnitudes(samples: Tensor, window: Tensor, hop: int) -> Tensor:
    """|STFT| [B, size / 2 + 1, steps] of float samples [B, N], centred."""
    with torch.autocast(samples.device.type, enabled=False):
        spectrum = torch.stft(
            samples.float(),
            len(window),
            hop,
            window=window,
            return_complex=True,
            pad_mode="constant",
        )
        return (spectrum.real.square() + spectrum.imag.square() + 1e-9).sqrt()


def _bank(rate: int, size: int, mels: int) -> Tensor:
    def mel(hertz: float) -> float:
        return 2595 * math.log10(1 + hertz / 700)

    edges = torch.linspace(0, mel(rate / 2), mels + 2)
    edges = 700 * (10 ** (edges / 2595) - 1)
    bins = torch.linspace(0, rate / 2, size // 2 + 1)
    rise = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    fall = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    return torch.minimum(rise, fall).clamp(min=0)
