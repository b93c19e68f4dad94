"""A small phone recogniser, trained beside the codec: what it hears must survive the codec."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tools.demo_voice.spectra import MelSpectrogram
from tools.demo_voice.teacher import PHONES


class Listener(nn.Module):
    """Samples at 24 kHz [B, N * 480] -> phones of every 20 ms [B, N, phones], and what its layers
    saw [B, channels, N] each."""

    def __init__(self, channels: int = 192) -> None:
        super().__init__()
        self.mel = MelSpectrogram(24_000, 768, 240, 80)
        self.first = nn.Conv1d(80, channels, 5, 2, padding=2)
        self.layers = nn.ModuleList(
            nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation)
            for dilation in (1, 2, 4)
        )
        self.last = nn.Conv1d(channels, len(PHONES), 1)

    def forward(self, samples: Tensor) -> tuple[Tensor, list[Tensor]]:
        mel = self.mel(samples)[..., : samples.shape[-1] // 240]
        x = F.gelu(self.first((mel + 5) / 4))
        seen = [x]
        for layer in self.layers:
            x = x + F.gelu(layer(x))
            seen.append(x)
        return self.last(x).transpose(1, 2), seen


def listening_losses(
    listener: Listener, true: Tensor, made: Tensor, phones: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """For the listener: phones [B, N] in the true samples. For the codec: the phones in the made
    ones, and how far what the layers saw is from the true (the listener does not learn by these).
    """
    told, seen = listener(true)
    learns = F.cross_entropy(told.flatten(0, 1).float(), phones.flatten())
    frozen = {name: part.detach() for name, part in listener.named_parameters()}
    told, ours = torch.func.functional_call(listener, frozen, (made,))
    heard = F.cross_entropy(told.flatten(0, 1).float(), phones.flatten())
    apart = [F.l1_loss(a.float(), b.float().detach()) for a, b in zip(ours, seen, strict=True)]
    return learns, heard, torch.stack(apart).mean()
