"""The Triton kernels of `elementwise.py`: a program per row, or per piece of a row for SwiGLU."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

_PIECE = 1024  # of a row of SwiGLU


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Run `elementwise.rms_norm`: x [..., H], weight [H] float -> [..., H] float."""
    rows = _as_rows(x)
    width = rows.shape[1]
    out = rows.new_empty(rows.shape)
    if len(rows):
        block = triton.next_power_of_2(width)
        _rms_norm[(len(rows),)](
            rows, weight, out, width, rows.stride(0), eps, BLOCK=block, num_warps=_warps(block)
        )
    return out.view(x.shape)


def add_rms_norm(
    parts: Tensor, residual: Tensor, weight: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """Run `elementwise.add_rms_norm`: parts [S, ..., H] float or float32, residual [..., H], weight
    [H] float -> twice [..., H] float."""
    rows = _as_rows(residual)
    count, width = rows.shape
    given = parts.reshape(len(parts), -1, width)
    assert given.shape[1] == count and given.stride(2) == 1
    total, out = rows.new_empty(rows.shape), rows.new_empty(rows.shape)
    if count:
        block = triton.next_power_of_2(width)
        _add_rms_norm[(count,)](
            given,
            rows,
            weight,
            total,
            out,
            width,
            given.stride(0),
            given.stride(1),
            rows.stride(0),
            eps,
            PARTS=len(parts),
            BLOCK=block,
            num_warps=_warps(block),
        )
    return total.view(residual.shape), out.view(residual.shape)


def swiglu(gate_up: Tensor) -> Tensor:
    """Run `elementwise.swiglu`: gate_up [..., 2 * I] float -> [..., I] float."""
    rows = _as_rows(gate_up)
    width = rows.shape[1] // 2
    out = rows.new_empty(len(rows), width)
    if len(rows):
        block = min(_PIECE, triton.next_power_of_2(width))
        grid = (len(rows), triton.cdiv(width, block))
        _swiglu[grid](rows, out, width, rows.stride(0), BLOCK=block, num_warps=_warps(block))
    return out.view(*gate_up.shape[:-1], width)


def _as_rows(x: Tensor) -> Tensor:
    """Return x [..., H] as [M, H] whose rows are contiguous."""
    rows = x.reshape(-1, x.shape[-1])
    assert rows.stride(1) == 1, f"a row must lie side by side, its stride is {rows.stride(1)}"
    return rows


def _warps(block: int) -> int:
    """Return the warps for a block: each thread has eight or more elements, a load of 16 bytes in
    half precision."""
    return max(1, min(8, block // 256))


@triton.jit
def _normed(x, weight, at, mask, width, eps):
    """Return the RMSNorm of x [BLOCK] float32, which is 0 where masked."""
    scale = tl.rsqrt(tl.sum(x * x, 0) / width + eps)
    return x * scale * tl.load(weight + at, mask=mask, other=0.0).to(tl.float32)


@triton.jit
def _rms_norm(x, weight, out, width, stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    mask = at < width
    values = tl.load(x + row * stride + at, mask=mask, other=0.0).to(tl.float32)
    normed = _normed(values, weight, at, mask, width, eps)
    tl.store(out + row * width + at, normed.to(out.dtype.element_ty), mask=mask)


@triton.jit
def load_sum(parts, stride, mask, model, PARTS: tl.constexpr):
    """Return the sum of what PARTS parts have at pointers [...], each `stride` behind the one
    before, as `sum_of_parts` does: rounded to the type of pointer `model`, and widened again."""
    total = tl.load(parts, mask=mask, other=0.0).to(tl.float32)
    for part in tl.static_range(1, PARTS):
        total += tl.load(parts + part * stride, mask=mask, other=0.0).to(tl.float32)
    return total.to(model.dtype.element_ty).to(tl.float32)


@triton.jit
def _add_rms_norm(
    parts,
    residual,
    weight,
    total,
    out,
    width,
    part_stride,
    stride,
    other_stride,
    eps,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    mask = at < width
    values = load_sum(parts + row * stride + at, part_stride, mask, total, PARTS)
    values += tl.load(residual + row * other_stride + at, mask=mask, other=0.0).to(tl.float32)
    rounded = values.to(total.dtype.element_ty)
    tl.store(total + row * width + at, rounded, mask=mask)
    normed = _normed(rounded.to(tl.float32), weight, at, mask, width, eps)
    tl.store(out + row * width + at, normed.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _swiglu(gate_up, out, width, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = at < width
    gate = tl.load(gate_up + row * stride + at, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(gate_up + row * stride + width + at, mask=mask, other=0.0).to(tl.float32)
    value = gate * tl.sigmoid(gate) * up
    tl.store(out + row * width + at, value.to(out.dtype.element_ty), mask=mask)
