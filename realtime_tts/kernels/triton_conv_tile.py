"""What the kernels of `triton_snake_conv.py` share: the sums of a tile, the steps that become the
next call's past, and the writing of a finished tile.

A `tile` is the row and the step of its outputs, which of them are known (each [BLOCK_T]), and their
columns [BLOCK_N]; the row may also be one for all.
"""

from __future__ import annotations

import triton
import triton.language as tl

from realtime_tts.kernels.triton_snake_unfold import snake_columns


@triton.jit
def product(
    x,
    weight,
    old,
    tile,
    steps,
    CHANNELS: tl.constexpr,
    OUTPUTS: tl.constexpr,
    COUNT: tl.constexpr,
    DILATION: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Return the convolution's sums [BLOCK_T, BLOCK_N] float32, without bias. `old`, where the
    carried steps begin, is one for all steps, or one for each."""
    row, step, known, column = tile
    CHUNKS: tl.constexpr = (CHANNELS + BLOCK_K - 1) // BLOCK_K
    PAST: tl.constexpr = (COUNT - 1) * DILATION
    total = tl.zeros((step.shape[0], column.shape[0]), tl.float32)
    fresh = x + (row * steps + step) * CHANNELS
    past = old + (step + PAST) * CHANNELS
    for piece in range(COUNT * CHUNKS):
        tap = piece // CHUNKS
        channel = (piece % CHUNKS) * BLOCK_K + tl.arange(0, BLOCK_K)
        behind = tap * DILATION - PAST
        # One load, wherever a step is: two with a choice between them could not be prefetched.
        source = fresh
        if COUNT > 1:
            source = tl.where(step + behind < 0, past, fresh)
        left = tl.load(
            (source + behind * CHANNELS)[:, None] + channel[None, :],
            mask=known[:, None] & (channel < CHANNELS)[None, :],
            other=0.0,
        )
        right = tl.load(
            weight + (tap * CHANNELS + channel)[:, None] * OUTPUTS + column[None, :],
            mask=(channel < CHANNELS)[:, None] & (column < OUTPUTS)[None, :],
            other=0.0,
        )
        total = tl.dot(left, right, total, input_precision=PRECISION)
    return total


@triton.jit
def keep(x, new, tile, steps, CHANNELS: tl.constexpr, PAST: tl.constexpr, BLOCK_K: tl.constexpr):
    """Write those steps of a tile of x that are the next call's past, its last ones, to `new`."""
    row, step, known, _ = tile
    place = step - (steps - PAST)
    source = x + (row * steps + step) * CHANNELS
    target = new + place * CHANNELS
    for first in range(0, CHANNELS, BLOCK_K):
        c = (first + tl.arange(0, BLOCK_K))[None, :]
        last = (known & (place >= 0))[:, None] & (c < CHANNELS)
        tl.store(target[:, None] + c, tl.load(source[:, None] + c, mask=last), mask=last)


@triton.jit
def write(
    y,
    residual,
    raw,
    active,
    rate,
    gain,
    tile,
    steps,
    OUTPUTS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    RAW: tl.constexpr,
    ACTIVE: tl.constexpr,
    FAST: tl.constexpr,
):
    """Add the residual to y [BLOCK_T, BLOCK_N] float32; write the sum, and SnakeBeta of it."""
    row, step, known, column = tile
    n = column[None, :]
    inside = known[:, None] & (n < OUTPUTS)
    offset = (row * steps + step)[:, None] * OUTPUTS + n
    if RESIDUAL:
        y += tl.load(residual + offset, mask=inside, other=0.0).to(tl.float32)
    if RAW:
        tl.store(raw + offset, y.to(raw.dtype.element_ty), mask=inside)
    if ACTIVE:
        y = snake_columns(y, rate, gain, n, OUTPUTS, FAST)
        tl.store(active + offset, y.to(active.dtype.element_ty), mask=inside)
