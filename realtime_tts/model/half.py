"""Matrix products with weights packed in half precision: float32 in, sums and out.

For weights that half precision holds exactly, which those of checkpoints stored in bfloat16 or
float16 are, this is the float32 product with half the memory traffic, and FBGEMM's call costs a
tenth of oneDNN's, which is most of the time of a small product. Its kernels sum over the inputs
in one order for any number of rows; `half_serves` checks that on the machine at hand.
"""

from __future__ import annotations

import warnings
from functools import lru_cache

import torch
from torch import Tensor

_LARGEST = 1 << 19
"""Weights up to which one thread is as fast as several: FBGEMM uses one."""

_TOLERANCE = 2.0**-25
"""What numbers below half precision's smallest normal one may lose, as the tiniest of a bfloat16
weight do. Beside the others, `_SHARE` of the largest is too little to reach a float32 sum."""

_SHARE = 2.0**-18

_PROBED_ROWS = (*range(1, 18), 24, 31, 32, 33, 48)


def half_serves(weight: Tensor) -> bool:
    """Whether a float32 weight [N, K] on the CPU may be packed in half precision, and should."""
    if torch.get_num_threads() > 1 and weight.numel() > _LARGEST:
        return False
    lost = (weight.half().float() - weight).abs().max()
    if not lost <= min(_TOLERANCE, _SHARE * float(weight.abs().max())):  # true for NaN, too
        return False
    return rows_are_independent(weight.shape[1], weight.shape[0])


def pack_half(weight: Tensor) -> Tensor:
    """Weight [N, K] in FBGEMM's own layout; only `half_product` can read it."""
    return torch.fbgemm_pack_gemm_matrix_fp16(weight)


def half_product(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    """x [..., K] @ weight.T + bias -> [..., N]."""
    return torch.fbgemm_linear_fp16_weight_fp32_activation(x, packed, bias)


@lru_cache(maxsize=1)
def bias_is_optional() -> bool:
    """Whether this version of torch computes the product without a bias; some want one."""
    try:
        half_product(torch.zeros(1, 1), pack_half(torch.zeros(1, 1)), None)
    except (RuntimeError, TypeError):
        return False
    return True


@lru_cache(maxsize=256)
def rows_are_independent(inputs: int, outputs: int) -> bool:
    """Whether the product exists here, is right, and gives a row the same bits in any batch.

    torch announces that it will remove these functions some day; without them we do as before.
    """
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(outputs, inputs, generator=generator).half().float()
    rows = torch.randn(_PROBED_ROWS[-1], inputs, generator=generator)
    bias = torch.zeros(outputs)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            packed = pack_half(weight)
            whole = half_product(rows, packed, bias)
    except (AttributeError, RuntimeError, TypeError):
        return False
    if not torch.allclose(whole, rows @ weight.t(), rtol=1e-4, atol=1e-4 * inputs**0.5):
        return False
    return all(torch.equal(half_product(rows[:n], packed, bias), whole[:n]) for n in _PROBED_ROWS)
