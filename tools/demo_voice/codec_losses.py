"""What the codec is trained on: mel distances at many resolutions, and discriminators."""

from __future__ import annotations

from collections.abc import Sequence

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


class _SpectrumDiscriminator(nn.Module):
    """Convolutions over one complex spectrogram."""

    window: Tensor

    def __init__(self, size: int, channels: int):
        super().__init__()
        self.register_buffer("window", torch.hann_window(size), persistent=False)
        norm = nn.utils.parametrizations.weight_norm
        self.layers = nn.ModuleList(
            norm(nn.Conv2d(inputs, channels, (3, 9), (1, stride), padding=(dilation, 4),
                           dilation=(dilation, 1)))
            for inputs, stride, dilation in ((2, 1, 1), (channels, 2, 1), (channels, 2, 2),
                                             (channels, 2, 4))
        )  # fmt: skip
        self.last = norm(nn.Conv2d(channels, 1, 3, padding=1))

    def forward(self, samples: Tensor) -> tuple[Tensor, list[Tensor]]:
        size = len(self.window)
        with torch.autocast(samples.device.type, enabled=False):
            spectrum = torch.stft(
                samples.float(), size, size // 4, window=self.window, return_complex=True,
                normalized=True,
            )  # fmt: skip
            x = torch.view_as_real(spectrum).permute(0, 3, 2, 1)  # [B, 2, steps, bins]
        seen = []
        for layer in self.layers:
            x = F.leaky_relu(layer(x), 0.1)
            seen.append(x)
        return self.last(x), seen


class Discriminator(nn.Module):
    """Judges samples at 24 kHz by spectra of three resolutions (Jang et al. 2021, UnivNet)."""

    def __init__(self, channels: int = 24) -> None:
        super().__init__()
        self.parts = nn.ModuleList(
            _SpectrumDiscriminator(size, channels) for size in (1024, 512, 256)
        )

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
    """Adversarial and feature-matching loss."""
    adversarial = [(1 - fake).float().square().mean() for fake, _ in made]
    matching = [
        F.l1_loss(ours.float(), theirs.float().detach())
        / theirs.float().abs().mean().clamp(min=1e-3).detach()
        for (_, real), (_, fake) in zip(true, made, strict=True)
        for theirs, ours in zip(real, fake, strict=True)
    ]
    return torch.stack(adversarial).mean(), torch.stack(matching).mean()
