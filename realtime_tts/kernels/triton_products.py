"""The Triton kernels of `products.py`: a program multiplies some outputs' weights with all rows.

The weights are the tall side of the matrix instructions, which take no fewer than 64 rows there,
but as few as eight on the other side. They are read once, so they need not stay in the cache.
"""

from __future__ import annotations

from types import MappingProxyType

import torch
import triton
import triton.language as tl
from torch import Tensor

from realtime_tts.kernels.products import INPUTS, MOST_ROWS, OUTPUTS, parts_of

_TILES = MappingProxyType({"OUTPUTS": OUTPUTS, "INPUTS": INPUTS, "STAGES": 4, "num_warps": 4})
"""How both kernels are launched. Weights on their way take up to 48 KiB a stage."""


def split_k_product(x: Tensor, weight: Tensor) -> Tensor:
    """Run `products.split_k_product`: x [M, K], weight [N, K] float -> [S, M, N] float32."""
    rows, outputs = _checked(x, weight), len(weight)
    count = parts_of(*weight.shape)
    parts = x.new_empty(count, rows, outputs, dtype=torch.float32)
    _split_k_product[(outputs // OUTPUTS, count)](
        x,
        weight,
        parts,
        rows,
        N=outputs,
        K=weight.shape[1],
        SHARE=weight.shape[1] // count,
        ROWS=_block(rows),
        **_TILES,
    )
    return parts


def swiglu_product(x: Tensor, weight: Tensor) -> Tensor:
    """Run `products.swiglu_product`: x [M, K], weight [2 * I, K] float -> [M, I] float."""
    rows, outputs = _checked(x, weight), len(weight) // 2
    out = x.new_empty(rows, outputs)
    _swiglu_product[(outputs // OUTPUTS,)](
        x,
        weight,
        out,
        rows,
        N=outputs,
        K=weight.shape[1],
        ROWS=_block(rows),
        **_TILES,
    )
    return out


def _checked(x: Tensor, weight: Tensor) -> int:
    """Return the number of rows of x [M, K] for weight [N, K]."""
    rows, inputs = x.shape
    assert rows <= MOST_ROWS and inputs == weight.shape[1] and x.dtype == weight.dtype
    assert x.is_contiguous() and weight.is_contiguous()
    assert len(weight) % (2 * OUTPUTS) == 0 and inputs % INPUTS == 0
    return rows


def _block(rows: int) -> int:
    """Return the rows that a kernel is compiled for: 16, 32 or 64."""
    return max(16, triton.next_power_of_2(rows))


@triton.jit
def _rows(x, row, at, rows, K: tl.constexpr):
    """Return inputs `at` of all rows: [INPUTS, ROWS], zeros beyond the last row."""
    return tl.load(x + row[None, :] * K + at[:, None], mask=row[None, :] < rows, other=0.0)


@triton.jit
def _weights(weight, output, at, K: tl.constexpr):
    """Return the weights of inputs `at` for outputs: [OUTPUTS, INPUTS]."""
    return tl.load(weight + output[:, None] * K + at[None, :], eviction_policy="evict_first")


@triton.jit(do_not_specialize=["rows"])  # so that no new number of rows compiles during a turn
def _split_k_product(
    x,
    weight,
    parts,
    rows,
    N: tl.constexpr,
    K: tl.constexpr,
    SHARE: tl.constexpr,
    ROWS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    INPUTS: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Multiply SHARE inputs of every row with their weights for OUTPUTS outputs."""
    output = tl.program_id(0) * OUTPUTS + tl.arange(0, OUTPUTS)
    part, row, at = tl.program_id(1), tl.arange(0, ROWS), tl.arange(0, INPUTS)
    first = part * SHARE
    total = tl.zeros([OUTPUTS, ROWS], tl.float32)
    for start in tl.range(first, first + SHARE, INPUTS, num_stages=STAGES):
        given = _rows(x, row, start + at, rows, K)
        total = tl.dot(_weights(weight, output, start + at, K), given, total)
    target = parts + (part * rows + row[None, :]) * N + output[:, None]
    tl.store(target, total, mask=row[None, :] < rows)


@triton.jit(do_not_specialize=["rows"])
def _swiglu_product(
    x,
    weight,
    out,
    rows,
    N: tl.constexpr,
    K: tl.constexpr,
    ROWS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    INPUTS: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Compute gate and up for OUTPUTS outputs of every row, and SwiGLU of them."""
    output = tl.program_id(0) * OUTPUTS + tl.arange(0, OUTPUTS)
    row, at = tl.arange(0, ROWS), tl.arange(0, INPUTS)
    gate = tl.zeros([OUTPUTS, ROWS], tl.float32)
    up = tl.zeros([OUTPUTS, ROWS], tl.float32)
    for start in tl.range(0, K, INPUTS, num_stages=STAGES):
        given = _rows(x, row, start + at, rows, K)
        gate = tl.dot(_weights(weight, output, start + at, K), given, gate)
        up = tl.dot(_weights(weight, N + output, start + at, K), given, up)
    gate = gate.to(out.dtype.element_ty).to(tl.float32)
    up = up.to(out.dtype.element_ty).to(tl.float32)
    value = gate * tl.sigmoid(gate) * up
    target = out + row[None, :] * N + output[:, None]
    tl.store(target, value.to(out.dtype.element_ty), mask=row[None, :] < rows)
