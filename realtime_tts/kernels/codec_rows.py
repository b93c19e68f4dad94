"""What lies between the codec's products, row by row."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels.codec_past import Past
from realtime_tts.kernels.dispatch import Kernel
from realtime_tts.kernels.snake_unfold import unfold


@Kernel
def add_scaled_norm(x: Tensor, y: Tensor, scale: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x += scale * y, in place, then RMSNorm: x and y [M, H], scale and weight [H] -> [M, H]."""
    x.copy_(x.float() + scale.float() * y.float())
    wide = x.float()
    normed = wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt()
    return (normed * weight.float()).to(x.dtype)


@Kernel
def depthwise_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    norm: tuple[Tensor, Tensor],
    eps: float,
    past: Past,
) -> Tensor:
    """Causal depthwise convolution, then LayerNorm: x [B, L, C], weight [count, C] -> [B, L, C]."""
    rows, steps, channels = x.shape
    matrix = unfold.plain(x, past, count=weight.shape[0]).view(rows, steps, -1, channels)
    y = (matrix.float() * weight.float()).sum(2) + bias.float()
    return F.layer_norm(y, (channels,), norm[0].float(), norm[1].float(), eps).to(x.dtype)


@Kernel
def codebook_sum(codes: Tensor, table: Tensor) -> Tensor:
    """A frame's vector is the sum of its codes' entries: codes [B, T, books] int64, table
    [books, entries, dim] -> [B, T, dim].

    Codes outside the codebook count as its first or last entry: a row that has ended may carry
    an id of the talker's, and must not read elsewhere.
    """
    books, entries, dim = table.shape
    first = torch.arange(books, device=codes.device) * entries
    chosen = (codes.clamp(0, entries - 1) + first).flatten()
    found = table.view(-1, dim).index_select(0, chosen).view(*codes.shape, dim)
    return found.float().sum(2).to(table.dtype)


@Kernel
def advance(frames: Tensor, side: Tensor, slots: Tensor, count: int) -> None:
    """End a call, after all layers: `count` frames more are done, and the taps just written are the
    present ones."""
    frames[slots] = frames[slots] + count
    side[slots] = 1 - side[slots]
