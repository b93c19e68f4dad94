"""RMSNorm, with and without a residual sum before it, and SwiGLU's product."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels.dispatch import Kernel


@Kernel
def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean(x²) + eps) * weight over the last axis: x [..., H], weight [H] -> [..., H].

    Zhang, Sennrich: "Root Mean Square Layer Normalization", 2019.
    """
    wide = x.float()
    scale = wide.square().mean(-1, keepdim=True).add_(eps).rsqrt_()
    return wide.mul(scale).mul_(weight.float()).to(x.dtype)


@Kernel
def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """x + residual, and the RMSNorm of that sum: x, residual [..., H], weight [H].

    The norm is that of the sum as returned, rounded to x's type: what the next layer adds to.
    """
    total = x + residual
    return total, rms_norm.plain(total, weight, eps)


@Kernel
def swiglu(gate_up: Tensor) -> Tensor:
    """silu(gate) * up of both in one tensor, gate first: [..., 2 * I] -> [..., I].

    Shazeer: "GLU Variants Improve Transformer", 2020.
    """
    gate, up = gate_up.float().chunk(2, -1)
    return F.silu(gate).mul_(up).to(gate_up.dtype)
