"""What the codec is trained on: mel distances at many resolutions, and discriminators."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tools.demo_voice.spectra import MelSpectrogram

_SIZES = ((64, 10), (128, 15), (256, 30), (512, 60), (1024, 100), (2048, 120))


class MelDistance(nn.Module):
    """Mean L1 of log-mel spectra at six resolutions (Kumar et al. 2023, DAC)."""

    def __init__(self) -> None:
        super().__init__()
        self.mels = nn.ModuleList(
            MelSpectrogram(24_000, size, size // 4, bins) for size, bins in _SIZES
        )

    def forward(self, made: Tensor, true: Tensor) -> Tensor:
        distances = [F.l1_loss(mel(made), mel(true)) for mel in self.mels]
        return torch.stack(distances).mean()


_NORM = nn.utils.parametrizations.weight_norm
_SLOPE = 0.1
_COMPRESSION = 0.3
"""The power of magnitudes that a discriminator sees: quiet partials count, too."""


class _Layers(nn.Module):
    """Convolutions with leaky ReLU, and a last one that judges."""

    def __init__(self, layers: Sequence[nn.Module], last: nn.Module):
        super().__init__()
        self.layers, self.last = nn.ModuleList(layers), last

    def forward(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        seen = []
        for layer in self.layers:
            x = F.leaky_relu(layer(x), _SLOPE)
            seen.append(x)
        return self.last(x), seen


class _SpectrumDiscriminator(_Layers):
    """Over one complex spectrogram (Jang et al. 2021, UnivNet), its magnitudes compressed."""

    window: Tensor

    def __init__(self, size: int, channels: int):
        layers = [
            _NORM(
                nn.Conv2d(
                    inputs, channels, (3, 9), (1, 2), padding=(dilation, 4), dilation=(dilation, 1)
                )
            )
            for inputs, dilation in ((2, 1), (channels, 1), (channels, 2), (channels, 4))
        ]
        super().__init__(layers, _NORM(nn.Conv2d(channels, 1, 3, padding=1)))
        self.register_buffer("window", torch.hann_window(size), persistent=False)

    def forward(self, samples: Tensor) -> tuple[Tensor, list[Tensor]]:
        size = len(self.window)
        with torch.autocast(samples.device.type, enabled=False):
            spectrum = torch.stft(
                samples.float(), size, size // 4, window=self.window, return_complex=True
            )
            parts = torch.view_as_real(spectrum)
            power = parts.square().sum(-1, keepdim=True) + 1e-8
            x = (parts * power ** ((_COMPRESSION - 1) / 2)).permute(0, 3, 2, 1)
        return super().forward(x)  # [B, 2, steps, bins]


class _PeriodDiscriminator(_Layers):
    """Over every `period`-th sample (Kong et al. 2020, HiFi-GAN)."""

    def __init__(self, period: int):
        widths = (1, 16, 48, 96, 96)
        layers = [
            _NORM(nn.Conv2d(inputs, outputs, (5, 1), (3, 1), padding=(2, 0)))
            for inputs, outputs in pairwise(widths)
        ]
        layers.append(_NORM(nn.Conv2d(widths[-1], widths[-1], (5, 1), padding=(2, 0))))
        super().__init__(layers, _NORM(nn.Conv2d(widths[-1], 1, (3, 1), padding=(1, 0))))
        self.period = period

    def forward(self, samples: Tensor) -> tuple[Tensor, list[Tensor]]:
        samples = F.pad(samples, (0, -samples.shape[-1] % self.period))
        return super().forward(samples.view(len(samples), 1, -1, self.period))


class Discriminator(nn.Module):
    """Judges samples at 24 kHz by spectra of three resolutions and by five periods."""

    def __init__(self) -> None:
        super().__init__()
        spectra = (_SpectrumDiscriminator(size, 16) for size in (2048, 1024, 512))
        periods = (_PeriodDiscriminator(period) for period in (2, 3, 5, 7, 11))
        self.parts = nn.ModuleList((*spectra, *periods))

    def forward(self, samples: Tensor) -> list[tuple[Tensor, list[Tensor]]]:
        return [part(samples) for part in self.parts]


Judged = Sequence[tuple[Tensor, list[Tensor]]]


def discriminator_loss(true: Judged, made: Judged) -> Tensor:
    """Least squares (Mao et al. 2017)."""
    losses = [
        (1 - real).float().square().mean() + fake.float().square().mean()
        for (real, _), (fake, _) in zip(true, made, strict=True)
    ]
    return torch.stack(losses).mean()


def generator_losses(true: Judged, made: Judged) -> tuple[Tensor, Tensor]:
    """Adversarial and feature-matching loss, each summed over the discriminators."""
    adversarial = [(1 - fake).float().square().mean() for fake, _ in made]
    matching = [
        torch.stack([_unlike(*pair) for pair in zip(fake, real, strict=True)]).mean()
        for (_, real), (_, fake) in zip(true, made, strict=True)
    ]
    return torch.stack(adversarial).sum(), torch.stack(matching).sum()


def _unlike(ours: Tensor, theirs: Tensor) -> Tensor:
    theirs = theirs.float().detach()
    return F.l1_loss(ours.float(), theirs) / theirs.abs().mean().clamp(min=1e-3)
