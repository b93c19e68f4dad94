"""The Triton kernels of `snake_conv.py`: convolutions without a left matrix in memory.

A tile of outputs is a sum of small products over taps and channels; the operations after it (bias,
residual, the next layer's SnakeBeta, the pointwise convolution of a residual unit) are done before
anything is written. Inputs were activated by the kernel that wrote them: a step is read once for
each tap, mostly from the cache, and its sine is computed once.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from realtime_tts.kernels.codec_past import Past, Snake
from realtime_tts.kernels.triton_conv_tile import keep, product, write
from realtime_tts.kernels.triton_snake_unfold import (
    fast_sine,
    past_arguments,
    present,
    snake_columns,
)

_WAVES = 264  # programs worth having: two for each multiprocessor of an H200


@triton.jit
def _conv(
    x,
    weight,
    bias,
    residual,
    raw,
    active,
    rate,
    gain,
    taps,
    side,
    slots,
    steps,
    slot_stride,
    side_stride,
    count,
    CHANNELS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    COUNT: tl.constexpr,
    DILATION: tl.constexpr,
    RESIDUAL: tl.constexpr,
    RAW: tl.constexpr,
    ACTIVE: tl.constexpr,
    PRECISION: tl.constexpr,
    FAST: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Compute a tile of the steps of all rows, one row after the other: `count` steps in all."""
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    at = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T)
    known = at < count
    row = (at // steps).to(tl.int64)
    step = at % steps
    tile = row, step, known, column
    PAST: tl.constexpr = (COUNT - 1) * DILATION
    old = taps
    if COUNT > 1:
        slot = tl.load(slots + row, mask=known, other=0)
        now = tl.load(side + slot, mask=known, other=0)
        state = taps + slot * slot_stride
        old = state + now * side_stride
        if tl.program_id(0) == 0:
            new = state + (1 - now) * side_stride
            keep(x, new, tile, steps, CHANNELS, PAST, BLOCK_K)
    y = product(x, weight, old, tile, steps, CHANNELS, OUTPUTS, COUNT, DILATION, PRECISION, BLOCK_K)
    n = column[None, :]
    y += tl.load(bias + n, mask=n < OUTPUTS, other=0.0)
    write(y, residual, raw, active, rate, gain, tile, steps, OUTPUTS, RESIDUAL, RAW, ACTIVE, FAST)


@triton.jit
def _residual_unit(
    x,
    active,
    wide,
    wide_bias,
    middle_rate,
    middle_gain,
    point,
    point_bias,
    raw,
    activated,
    rate,
    gain,
    taps,
    side,
    slots,
    steps,
    slot_stride,
    side_stride,
    CHANNELS: tl.constexpr,
    COUNT: tl.constexpr,
    DILATION: tl.constexpr,
    RAW: tl.constexpr,
    PRECISION: tl.constexpr,
    FAST: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Compute all channels of a tile of steps: hidden ones never leave the multiprocessor."""
    row = tl.program_id(1).to(tl.int64)
    step = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    known = step < steps
    column = tl.arange(0, BLOCK_N)
    tile = row, step, known, column
    PAST: tl.constexpr = (COUNT - 1) * DILATION
    old, new = present(taps, side, slots, row, slot_stride, side_stride)
    if (tl.program_id(0) + 1) * BLOCK_T > steps - PAST:
        keep(active, new, tile, steps, CHANNELS, PAST, BLOCK_K)
    hidden = product(
        active, wide, old, tile, steps, CHANNELS, CHANNELS, COUNT, DILATION, PRECISION, BLOCK_K
    )
    n, k = column[None, :], column[:, None]
    hidden += tl.load(wide_bias + n, mask=n < CHANNELS, other=0.0)
    hidden = snake_columns(hidden, middle_rate, middle_gain, n, CHANNELS, FAST)
    hidden = hidden.to(active.dtype.element_ty)
    matrix = tl.load(point + k * CHANNELS + n, mask=(k < CHANNELS) & (n < CHANNELS), other=0.0)
    y = tl.dot(hidden, matrix, input_precision=PRECISION)
    y += tl.load(point_bias + n, mask=n < CHANNELS, other=0.0)
    write(y, x, raw, activated, rate, gain, tile, steps, CHANNELS, True, RAW, True, FAST)


def conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    past: Past | None,
    *,
    count: int = 1,
    dilation: int = 1,
    residual: Tensor | None = None,
    snake: Snake | None = None,
    raw: bool = True,
) -> tuple[Tensor | None, Tensor | None]:
    """Run `snake_conv.conv`: x [B, L, C] float -> [B, L, N] float, raw and activated."""
    rows, steps, channels = x.shape
    outputs = weight.shape[1]
    assert x.is_contiguous() and weight.is_contiguous()
    assert past is not None or count == 1
    assert steps >= (count - 1) * dilation, "the past must not be longer than the new steps"
    block_t, block_n, warps, stages = _conv_tile(rows * steps, outputs)
    columns = triton.cdiv(outputs, block_n)
    y = x.new_empty(rows, steps, outputs) if raw else None
    active = None if snake is None else x.new_empty(rows, steps, outputs)
    _conv[(columns, triton.cdiv(rows * steps, block_t))](
        x,
        weight,
        bias,
        x if residual is None else residual,
        x if y is None else y,
        x if active is None else active,
        x if snake is None else snake.rate,
        x if snake is None else snake.gain,
        *past_arguments(x, past, steps),
        rows * steps,
        CHANNELS=channels,
        OUTPUTS=outputs,
        COUNT=count,
        DILATION=dilation,
        RESIDUAL=residual is not None,
        RAW=raw,
        ACTIVE=snake is not None,
        PRECISION=_precision(x),
        FAST=fast_sine(x),
        BLOCK_T=block_t,
        BLOCK_K=_depth(channels),
        BLOCK_N=block_n,
        num_warps=warps,
        num_stages=stages,
    )
    return y, active


def residual_unit(
    x: Tensor,
    active: Tensor,
    wide: tuple[Tensor, Tensor],
    middle: Snake,
    point: tuple[Tensor, Tensor],
    past: Past,
    *,
    dilation: int,
    after: Snake,
    raw: bool = True,
) -> tuple[Tensor | None, Tensor]:
    """Run `snake_conv.residual_unit`: x, active [B, L, C] float -> [B, L, C] float, raw and
    activated."""
    rows, steps, channels = x.shape
    count = wide[0].shape[0] // channels
    assert x.is_contiguous() and active.is_contiguous()
    assert steps >= (count - 1) * dilation, "the past must not be longer than the new steps"
    block_n = max(16, triton.next_power_of_2(channels))
    block_t, warps = _tile(rows, steps, block_n)
    y = torch.empty_like(x) if raw else None
    activated = torch.empty_like(x)
    _residual_unit[(triton.cdiv(steps, block_t), rows)](
        x,
        active,
        *wide,
        *middle,
        *point,
        x if y is None else y,
        activated,
        *after,
        *past_arguments(x, past, steps),
        CHANNELS=channels,
        COUNT=count,
        DILATION=dilation,
        RAW=raw,
        PRECISION=_precision(x),
        FAST=fast_sine(x),
        BLOCK_T=block_t,
        BLOCK_K=_depth(channels),
        BLOCK_N=block_n,
        num_warps=warps,
    )
    return y, activated


def _conv_tile(steps: int, outputs: int) -> tuple[int, int, int, int]:
    """Return steps and outputs of a tile, the largest that still give every multiprocessor work;
    warps, and the number of pipeline stages of loads."""
    block_n = 128 if outputs % 128 == 0 else min(64, max(16, triton.next_power_of_2(outputs)))
    columns = triton.cdiv(outputs, block_n)
    if columns * triton.cdiv(steps, 128) >= _WAVES and block_n < 128:
        return 128, block_n, 4, 3
    if columns * triton.cdiv(steps, 64) >= _WAVES:
        return 64, block_n, 4, 4
    return 32, block_n, 4, 3


def _tile(programs: int, steps: int, block_n: int) -> tuple[int, int]:
    """Return the steps of a tile, the most that still give every multiprocessor work and fill their
    tiles to four fifths, and its warps."""
    for block_t in (128, 64):
        tiles = triton.cdiv(steps, block_t)
        if programs * tiles >= _WAVES and 4 * tiles * block_t <= 5 * steps:
            return block_t, 8 if block_t * block_n >= 128 * 128 else 4
    return 32, 4


def _depth(channels: int) -> int:
    """Return how many channels are summed at once: without a remainder where that is possible."""
    return next((depth for depth in (64, 32) if channels % depth == 0), 16)


def _precision(x: Tensor) -> str:
    """Return the precision of products: exact for float32, for tests; narrower types ignore it."""
    return "ieee" if x.dtype is torch.float32 else "tf32"
