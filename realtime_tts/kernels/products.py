"""Products of few rows, which take as long as reading their weights takes.

Inputs are split so that all of a GPU reads (split-K). cuBLAS adds the parts up in a kernel of its
own; here whatever comes next does so. SwiGLU is part of its product.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels.dispatch import Kernel, runs_triton
from realtime_tts.kernels.elementwise import swiglu

MOST_ROWS = 64
"""The most rows of a product: a program multiplies all of them."""

OUTPUTS, INPUTS = 64, 128
"""Outputs and inputs of the weights that a program multiplies at once."""

FEWEST_PROGRAMS = 64
"""With fewer programs, which SwiGLU's product does not split further, too little of a GPU reads."""

_PROGRAMS = 128  # about as many as an H100 or H200 has multiprocessors
_MOST_PARTS = 8
_TYPES = torch.bfloat16, torch.float16


@Kernel
def split_k_product(x: Tensor, weight: Tensor) -> Tensor:
    """Return x @ weight.T in parts whose sum it is (`sum_of_parts`), each over a share of the
    inputs: x [M, K], weight [N, K] float -> [S, M, N] float32 with S chosen by N and K. The plain
    form returns one part [1, M, N] float.
    """
    return F.linear(x, weight).unsqueeze(0)


@Kernel
def swiglu_product(x: Tensor, weight: Tensor) -> Tensor:
    """Return silu(gate) * up of the product x @ weight.T, whose first half is gate: x [M, K],
    weight [2 * I, K] float -> [M, I] float. Gate and up are rounded before, as with `swiglu`."""
    return swiglu.plain(F.linear(x, weight))


def few_rows(x: Tensor, weight: Tensor) -> bool:
    """Return whether Triton's products of this module serve x [M, K] and weight [N, K]: both in
    half precision, on a GPU for which the kernels were written.

    That is compute capability 9.0: others have less shared memory than four stages take, or have
    not been measured.
    """
    outputs, inputs = weight.shape
    return (
        x.dtype in _TYPES
        and x.dtype == weight.dtype
        and len(x) <= MOST_ROWS
        and outputs % (2 * OUTPUTS) == 0  # gate and up have half of them
        and inputs % INPUTS == 0
        and runs_triton(x)
        and (not x.is_cuda or torch.cuda.get_device_capability(x.device) == (9, 0))
    )


def gates_suffice(weight: Tensor) -> bool:
    """Return whether `swiglu_product` has enough programs for weight [2 * I, K]."""
    return len(weight) // (2 * OUTPUTS) >= FEWEST_PROGRAMS


def parts_of(outputs: int, inputs: int) -> int:
    """Return in how many parts Triton computes a product: twice as many while the programs are too
    few and the inputs divide."""
    count = 1
    while outputs // OUTPUTS * count < _PROGRAMS and count < _MOST_PARTS:
        if inputs % (2 * count * INPUTS):
            break
        count *= 2
    return count
