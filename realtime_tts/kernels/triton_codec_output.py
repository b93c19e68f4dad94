"""The Triton kernels of `codec_output.py`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from realtime_tts.kernels.codec_past import Past
from realtime_tts.kernels.triton_snake_unfold import past_arguments, present


@triton.jit
def _output_conv(
    active,
    weight,
    bias,
    samples,
    taps,
    side,
    slots,
    steps,
    slot_stride,
    side_stride,
    CHANNELS: tl.constexpr,
    COUNT: tl.constexpr,
    BLOCK_T: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """Multiply a tile for each tap, then sum: one output needs no matrix product."""
    PAST: tl.constexpr = COUNT - 1
    row = tl.program_id(1).to(tl.int64)
    step = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    c = tl.arange(0, BLOCK_C)[None, :]
    known = (step < steps)[:, None] & (c < CHANNELS)
    old, new = present(taps, side, slots, row, slot_stride, side_stride)
    fresh = active + row * steps * CHANNELS
    products = tl.zeros((BLOCK_T, BLOCK_C), tl.float32)
    for tap in tl.static_range(COUNT):
        at = (step + tap - PAST)[:, None]
        source = tl.where(at < 0, old + (at + PAST) * CHANNELS + c, fresh + at * CHANNELS + c)
        value = tl.load(source, mask=known, other=0.0)
        if tap == PAST:  # this tile itself
            place = at - (steps - PAST)
            tl.store(new + place * CHANNELS + c, value, mask=known & (place >= 0))
        factor = tl.load(weight + tap * CHANNELS + c, mask=c < CHANNELS, other=0.0)
        products += value.to(tl.float32) * factor.to(tl.float32)
    total = tl.sum(products, 1) + tl.load(bias)
    total = tl.minimum(tl.maximum(total, -1.0), 1.0)
    tl.store(samples + row * steps + step, total, mask=step < steps)


def output_conv(active: Tensor, weight: Tensor, bias: Tensor, past: Past) -> Tensor:
    """Run `codec_output.output_conv`: active [B, L, C] float -> [B, L] float32."""
    rows, steps, channels = active.shape
    assert active.is_contiguous() and weight.is_contiguous()
    assert steps >= weight.shape[0] - 1, "the past must not be longer than the new steps"
    samples = torch.empty(rows, steps, dtype=torch.float32, device=active.device)
    block_t = 8  # so that a program is one warp, and none waits for another
    _output_conv[(triton.cdiv(steps, block_t), rows)](
        active,
        weight,
        bias,
        samples,
        *past_arguments(active, past, steps),
        CHANNELS=channels,
        COUNT=weight.shape[0],
        BLOCK_T=block_t,
        BLOCK_C=triton.next_power_of_2(channels),
        num_warps=1,
    )
    return samples


@triton.jit
def _pcm(samples, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    scaled = tl.load(samples + at, mask=at < count, other=0.0)
    scaled = tl.minimum(tl.maximum(scaled, -1.0), 1.0) * 32767.0
    # Adding 1.5 * 2^23 leaves no room for a fraction: the sum is rounded half to even.
    rounded = (scaled + 12582912.0) - 12582912.0
    tl.store(out + at, rounded.to(tl.int16), mask=at < count)


def pcm(samples: Tensor) -> Tensor:
    """Run `codec_output.pcm`: samples [...] float32 -> [...] int16."""
    assert samples.is_contiguous()
    out = torch.empty_like(samples, dtype=torch.int16)
    block = 1024
    # A fused product and sum would be rounded once, where numpy rounds twice.
    _pcm[(triton.cdiv(samples.numel(), block),)](
        samples, out, samples.numel(), BLOCK=block, enable_fp_fusion=False
    )
    return out
