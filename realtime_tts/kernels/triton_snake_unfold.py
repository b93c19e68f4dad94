"""The Triton kernel of `snake_unfold.py`: one pass over the input, whatever the taps."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from realtime_tts.kernels.codec_past import Past, Snake


@triton.jit
def snake_beta(x, rate, gain, FAST: tl.constexpr):
    """Return x + gain · sin²(rate · x), float32 in the shape of x.

    FAST uses the sine of the special function unit, 5e-7 off, for results that are narrower than
    float32. It is a quarter of the instructions.

    Otherwise: sin² has the period pi, so no sign or quadrant matters: the angle minus the next
    multiple of pi (in three parts, each product exact for small multiples; Cody, Waite), then the
    Taylor series to the eleventh power, 6e-8 off at pi / 2. This is a third of libdevice's sine.
    """
    angle = x * rate
    if FAST:
        wave = tl.inline_asm_elementwise(
            "sin.approx.ftz.f32 $0, $1;", "=f,f", [angle], dtype=tl.float32, is_pure=True, pack=1
        )
        return x + gain * wave * wave
    # Adding 1.5 * 2^23 leaves no room for a fraction.
    turns = (angle * 0.3183098861837907 + 12582912.0) - 12582912.0
    angle = angle - turns * 3.140625
    angle = angle - turns * 9.67502593994140625e-4
    angle = angle - turns * 1.509957990978376432e-7
    # Where a float32 has no digits left for the angle, the result is still a sine's.
    angle = tl.minimum(tl.maximum(angle, -1.5707964), 1.5707964)
    square = angle * angle
    series = -2.505210838544172e-8 * square + 2.7557319223985893e-6
    series = series * square - 1.984126984126984e-4
    series = series * square + 8.333333333333333e-3
    series = series * square - 0.16666666666666666
    wave = angle + angle * square * series
    return x + gain * wave * wave


@triton.jit
def snake_columns(x, rate, gain, channel, CHANNELS: tl.constexpr, FAST: tl.constexpr):
    """Return SnakeBeta of x [T, C] float32 with the rates and gains of `channel` [1, C]."""
    rates = tl.load(rate + channel, mask=channel < CHANNELS, other=0.0)
    gains = tl.load(gain + channel, mask=channel < CHANNELS, other=0.0)
    return snake_beta(x, rates, gains, FAST)


@triton.jit
def present(taps, side, slots, row, slot_stride, side_stride):
    """Return where a row's carried steps begin, and where those for the next call go."""
    slot = tl.load(slots + row)
    now = tl.load(side + slot)
    base = taps + slot * slot_stride
    return base + now * side_stride, base + (1 - now) * side_stride


@triton.jit
def _unfold(
    x,
    matrix,
    rate,
    gain,
    add,
    taps,
    side,
    slots,
    steps,
    slot_stride,
    side_stride,
    CHANNELS: tl.constexpr,
    COUNT: tl.constexpr,
    DILATION: tl.constexpr,
    SNAKE: tl.constexpr,
    ADD: tl.constexpr,
    FAST: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """Copy one tile of the carried and the new steps to all places where the matrix needs it, so
    that every element is read, and its sine computed, once."""
    PAST: tl.constexpr = (COUNT - 1) * DILATION
    row = tl.program_id(2).to(tl.int64)
    at = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)  # in carried, then new steps
    channel = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    here, c = at[:, None], channel[None, :]
    known = (here < PAST + steps) & (c < CHANNELS)
    fresh = known & (here >= PAST)
    source = x + row * steps * CHANNELS + (here - PAST) * CHANNELS + c
    raw = tl.load(source, mask=fresh, other=0.0).to(tl.float32)
    value = raw
    if SNAKE:
        value = snake_columns(raw, rate, gain, c, CHANNELS, FAST)
    if ADD:
        shift = tl.load(add + c, mask=c < CHANNELS, other=0.0).to(tl.float32)
        tl.store(source, (raw + shift).to(x.dtype.element_ty), mask=fresh)
    if COUNT > 1:
        old, new = present(taps, side, slots, row, slot_stride, side_stride)
        kept = tl.load(old + here * CHANNELS + c, mask=known & (here < PAST), other=0.0)
        value = tl.where(here < PAST, kept.to(tl.float32), value)
        tl.store(
            new + (here - steps) * CHANNELS + c,
            value.to(taps.dtype.element_ty),
            mask=known & (here >= steps),
        )
    value = value.to(matrix.dtype.element_ty)
    for tap in tl.static_range(COUNT):
        step = here - tap * DILATION
        tl.store(
            matrix + ((row * steps + step) * COUNT + tap) * CHANNELS + c,
            value,
            mask=known & (step >= 0) & (step < steps),
        )


def unfold(
    x: Tensor,
    past: Past | None,
    *,
    count: int = 1,
    dilation: int = 1,
    snake: Snake | None = None,
    add: Tensor | None = None,
) -> Tensor:
    """Run `snake_unfold.unfold`: x [B, L, C] float -> [B * L, count * C] float."""
    rows, steps, channels = x.shape
    assert x.is_contiguous() and (past is not None or count == 1)
    matrix = torch.empty(rows * steps, count * channels, dtype=x.dtype, device=x.device)
    block_c = min(128, max(16, triton.next_power_of_2(channels)))
    known = steps + (count - 1) * dilation
    block_t = min(32, triton.next_power_of_2(known))
    grid = (triton.cdiv(known, block_t), triton.cdiv(channels, block_c), rows)
    _unfold[grid](
        x,
        matrix,
        x if snake is None else snake.rate,
        x if snake is None else snake.gain,
        x if add is None else add,
        *past_arguments(x, past, steps),
        CHANNELS=channels,
        COUNT=count,
        DILATION=dilation,
        SNAKE=snake is not None,
        ADD=add is not None,
        FAST=fast_sine(x),
        BLOCK_T=block_t,
        BLOCK_C=block_c,
    )
    return matrix


def fast_sine(x: Tensor) -> bool:
    """Return whether a sine whose result gets x's type may be the fast one of GPUs."""
    return x.device.type != "cpu" and x.dtype is not torch.float32


def past_arguments(
    x: Tensor, past: Past | None, steps: int
) -> tuple[Tensor, Tensor, Tensor, int, int, int]:
    """Return taps [slots + 1, 2, steps, channels], side, slots, steps and the strides of slot and
    side; without a past, x [B, L, C] float stands in for the tensors."""
    if past is None:
        return x, x, x, steps, 0, 0
    taps = past.taps
    assert taps.stride(3) == 1 and taps.stride(2) == taps.shape[3] and taps.dtype is x.dtype
    return taps, past.side, past.slots, steps, taps.stride(0), taps.stride(1)
