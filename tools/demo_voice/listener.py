"""A small recogniser of phones and pitch, trained beside the codec: what it hears must survive
the codec."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tools.demo_voice.phonetics import PHONES
from tools.demo_voice.spectra import MelSpectrogram, magnitudes

_FINE, _FINE_BINS = 2048, 104
"""Of a spectrum that tells harmonics apart, up to 1.2 kHz."""


def pitch_loss(told: Tensor, hertz: Tensor) -> Tensor:
    """told [..., 2]: a logit of having a pitch, and octaves above 55 Hz; hertz [...]: 0 where
    there is no pitch, negative where nothing is known."""
    told = told.float()
    known, voiced = (hertz >= 0).float(), hertz > 0
    has = F.binary_cross_entropy_with_logits(told[..., 0], voiced.float(), reduction="none")
    octaves = (hertz.clamp(min=30) / 55).log2()
    off = (told[..., 1] - octaves).abs() * voiced
    return (has * known).sum() / known.sum().clamp(min=1) + 4 * off.sum() / voiced.sum().clamp(
        min=1
    )


class Listener(nn.Module):
    """Samples at 24 kHz [B, N * 480] -> phones of every 20 ms [B, N, phones], pitch [B, N, 2], and
    what its layers saw [B, channels, N] each."""

    window: Tensor

    def __init__(self, channels: int = 192) -> None:
        super().__init__()
        self.mel = MelSpectrogram(24_000, 768, 240, 80)
        self.register_buffer("window", torch.hann_window(_FINE), persistent=False)
        self.first = nn.Conv1d(80 + _FINE_BINS, channels, 5, 2, padding=2)
        self.layers = nn.ModuleList(
            nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation)
            for dilation in (1, 2, 4)
        )
        self.last = nn.Conv1d(channels, len(PHONES) + 2, 1)

    def forward(self, samples: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        steps = samples.shape[-1] // 240
        mel = self.mel(samples)[..., :steps]
        fine = magnitudes(samples, self.window, 240)[:, :_FINE_BINS, :steps]
        x = torch.cat(((mel + 5) / 4, fine.clamp(min=1e-4).log() / 3), 1)
        x = F.gelu(self.first(x))
        seen = [x]
        for layer in self.layers:
            x = x + F.gelu(layer(x))
            seen.append(x)
        told = self.last(x).transpose(1, 2)
        return told[..., :-2], told[..., -2:], seen


def listening_losses(
    listener: Listener, true: Tensor, made: Tensor, phones: Tensor, pitch: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """For the listener: phones and pitch [B, N] in the true samples. For the codec: the same in the
    made ones, and how far what the layers saw is from the true (the listener does not learn by
    these).
    """
    told, high, seen = listener(true)
    learns = F.cross_entropy(told.flatten(0, 1).float(), phones.flatten()) + pitch_loss(high, pitch)
    frozen = {name: part.detach() for name, part in listener.named_parameters()}
    told, high, ours = torch.func.functional_call(listener, frozen, (made,))
    heard = F.cross_entropy(told.flatten(0, 1).float(), phones.flatten()) + pitch_loss(high, pitch)
    apart = [F.l1_loss(a.float(), b.float().detach()) for a, b in zip(ours, seen, strict=True)]
    return learns, heard, torch.stack(apart).mean()
