"""RMSNorm, with and without a residual sum before it, and SwiGLU's product."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels.dispatch import Kernel


@Kernel
def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Return x / sqrt(mean(x²) + eps) * weight over the last axis: x [..., H], weight [H] float ->
    [..., H] float.

    Zhang, Sennrich: "Root Mean Square Layer Normalization", 2019.
    """
    wide = x.float()
    scale = wide.square().mean(-1, keepdim=True).add_(eps).rsqrt_()
    return wide.mul(scale).mul_(weight.float()).to(x.dtype)


@Kernel
def add_rms_norm(
    parts: Tensor, residual: Tensor, weight: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """Return x + residual, and the RMSNorm of that sum: parts of x [S, ..., H] float or float32
    (`sum_of_parts`), residual [..., H], weight [H] float -> twice [..., H] float.

    The norm is that of the sum as returned, rounded to its type, because the next layer adds to
    that.
    """
    total = sum_of_parts(parts, residual.dtype) + residual
    return total, rms_norm.plain(total, weight, eps)


@Kernel
def swiglu(gate_up: Tensor) -> Tensor:
    """Return silu(gate) * up, with both in one tensor, gate first: [..., 2 * I] -> [..., I] float.

    Shazeer: "GLU Variants Improve Transformer", 2020.
    """
    gate, up = gate_up.float().chunk(2, -1)
    return F.silu(gate).mul_(up).to(gate_up.dtype)


def sum_of_parts(parts: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the sum over the first axis [S, ...] -> [...] of a type: float32 sums in the order of
    the parts, rounded once. A single part of that type is returned as it is, not copied."""
    total = parts[0]
    for part in range(1, len(parts)):
        total = total.float() + parts[part].float()
    return total.to(dtype)
