"""The codec's last convolution, and the conversion of samples to PCM."""

from __future__ import annotations

import torch
from torch import Tensor

from realtime_tts.kernels.codec_past import Past
from realtime_tts.kernels.dispatch import Kernel
from realtime_tts.kernels.snake_unfold import unfold


@Kernel
def output_conv(active: Tensor, weight: Tensor, bias: Tensor, past: Past) -> Tensor:
    """Convolve causally to one channel and clamp: active [B, L, C] float, weight [count, C] float,
    bias [1] float32 -> samples [B, L] float32 in [-1, 1]."""
    rows, steps, _ = active.shape
    matrix = unfold.plain(active, past, count=weight.shape[0])
    return (matrix.float() @ weight.float().flatten() + bias).view(rows, steps).clamp_(-1, 1)


@Kernel
def pcm(samples: Tensor) -> Tensor:
    """Round samples [...] float32 in [-1, 1] to int16 [...], as `realtime_tts.audio.pcm` does."""
    return (samples.clamp(-1, 1) * 32_767).round().to(torch.int16)
