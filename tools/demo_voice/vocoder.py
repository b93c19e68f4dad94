"""Kokoro's generator in half precision, with few passes over memory.

It computes what `kokoro.istftnet.Generator` computes, with that module's weights. Sound lies
channels last, as tensor cores read it, and normalization, style and activation are one compiled
function.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_EPSILON = 1e-5  # of torch.nn.InstanceNorm1d


def _styled(x: Tensor, scale: Tensor, shift: Tensor, alpha: Tensor) -> Tensor:
    """Instance norm with a style, then Snake (Ziyin et al. 2020): x [B, C, 1, T]; scale and shift
    [B, C, 1, 1]; alpha [1, C, 1, 1]."""
    wide = x.float()
    variance, mean = torch.var_mean(wide, -1, correction=0, keepdim=True)
    y = (wide - mean) * (torch.rsqrt(variance + _EPSILON) * scale) + shift
    return (y + torch.sin(alpha * y).square() / alpha).to(x.dtype)


class _Unit(nn.Module):
    """Norm, style, Snake and convolution: half of a layer of an `AdaINResBlock1`."""

    def __init__(self, norm: Any, alpha: Tensor, convolution: Any, dtype: torch.dtype) -> None:
        super().__init__()
        self.fc, self.norm, self.alpha = norm.fc, norm.norm, alpha[..., None].detach()
        weight = convolution.weight.detach()[:, :, None].to(dtype)
        self.weight = weight.contiguous(memory_format=torch.channels_last)
        self.bias = convolution.bias.detach().to(dtype)
        self.padding = (0, convolution.padding[0])
        self.dilation = (1, convolution.dilation[0])

    def forward(self, x: Tensor, style: Tensor, styled: Any) -> Tensor:
        gamma, beta = self.fc(style)[..., None, None].chunk(2, 1)
        weight, bias = (part[:, None, None] for part in (self.norm.weight, self.norm.bias))
        y = styled(x, (1 + gamma) * weight, (1 + gamma) * bias + beta, self.alpha)
        return F.conv2d(y, self.weight, self.bias, 1, self.padding, self.dilation)


class _Block(nn.Module):
    """An `AdaINResBlock1`; x [B, C, T]."""

    def __init__(self, block: Any, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype
        self.units = nn.ModuleList()
        for layer in range(len(block.convs1)):
            self.units.append(
                _Unit(block.adain1[layer], block.alpha1[layer], block.convs1[layer], dtype)
            )
            self.units.append(
                _Unit(block.adain2[layer], block.alpha2[layer], block.convs2[layer], dtype)
            )

    def forward(self, x: Tensor, style: Tensor, styled: Any) -> Tensor:
        x = x.to(self.dtype)[:, :, None].contiguous(memory_format=torch.channels_last)
        for first, second in zip(self.units[::2], self.units[1::2], strict=True):
            x = x + second(first(x, style, styled), style, styled)
        return x[:, :, 0]


class Vocoder(nn.Module):
    """Takes a `Generator`'s place. `dtype`: of its convolutions; `compiled`: for a GPU."""

    def __init__(self, generator: Any, dtype: torch.dtype, *, compiled: bool) -> None:
        super().__init__()
        self.own = generator
        self.noise = nn.ModuleList(_Block(block, dtype) for block in generator.noise_res)
        self.blocks = nn.ModuleList(_Block(block, dtype) for block in generator.resblocks)
        self._styled = torch.compile(_styled, dynamic=True) if compiled else _styled

    def forward(self, x: Tensor, style: Tensor, pitch: Tensor) -> Tensor:
        """Features [B, 512, T], style [B, 128] and pitch [B, T] in Hz -> samples [B, 1, 300 T]."""
        own = self.own
        source = self._source(pitch)
        for stage, (up, convolution, noise) in enumerate(
            zip(own.ups, own.noise_convs, self.noise, strict=True)
        ):
            x = up(F.leaky_relu(x.float(), 0.1))
            if stage == own.num_upsamples - 1:
                x = own.reflection_pad(x)
            x = x + noise(convolution(source), style, self._styled)
            blocks = self.blocks[stage * own.num_kernels :][: own.num_kernels]
            x = sum(block(x, style, self._styled) for block in blocks) / own.num_kernels
        x = own.conv_post(F.leaky_relu(x.float()))
        half = own.post_n_fft // 2 + 1
        samples: Tensor = own.stft.inverse(torch.exp(x[:, :half]), torch.sin(x[:, half:]))
        return samples

    def _source(self, pitch: Tensor) -> Tensor:
        """Harmonics and noise at this pitch, as magnitudes and phases."""
        own = self.own
        excitation, _, _ = own.m_source(own.f0_upsamp(pitch[:, None]).transpose(1, 2))
        return torch.cat(own.stft.transform(excitation.transpose(1, 2).squeeze(1)), 1)
