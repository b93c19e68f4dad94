"""The codec's operations between its matrix products, row by row."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels.codec_past import Past
from realtime_tts.kernels.dispatch import Kernel
from realtime_tts.kernels.snake_unfold import unfold


@Kernel
def add_scaled_norm(x: Tensor, y: Tensor, scale: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Add scale * y to x, in place, and return the RMSNorm of x: x, y [M, H], scale, weight [H]
    float -> [M, H] float."""
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
    """Convolve causally by channel, then apply LayerNorm: x [B, L, C], weight [count, C], bias [C],
    norm (weight [C], bias [C]) float -> [B, L, C] float."""
    rows, steps, channels = x.shape
    matrix = unfold.plain(x, past, count=weight.shape[0]).view(rows, steps, -1, channels)
    y = (matrix.float() * weight.float()).sum(2) + bias.float()
    return F.layer_norm(y, (channels,), norm[0].float(), norm[1].float(), eps).to(x.dtype)


@Kernel
def codebook_sum(codes: Tensor, table: Tensor) -> Tensor:
    """Return the vectors of frames, each the sum of its codes' entries: codes [B, T, books] int64,
    table [books, entries, dim] float -> [B, T, dim] float.

    Codes outside the codebook count as its first or last entry: a row that has ended may carry an
    id of the talker's, and must not read elsewhere.
    """
    books, entries, dim = table.shape
    first = torch.arange(books, device=codes.device) * entries
    chosen = (codes.clamp(0, entries - 1) + first).flatten()
    found = table.view(-1, dim).index_select(0, chosen).view(*codes.shape, dim)
    return found.float().sum(2).to(table.dtype)


@Kernel
def advance(frames: Tensor, side: Tensor, slots: Tensor, count: int) -> None:
    """End a call, after all layers: `count` more frames are done, and the taps just written become
    the present ones. frames, side [slots + 1] int64, changed in place; slots [B] int64."""
    frames[slots] = frames[slots] + count
    side[slots] = 1 - side[slots]
