"""The Triton kernels of `codec_rows.py`, one program for a row or a step."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from realtime_tts.kernels.codec_past import Past
from realtime_tts.kernels.triton_snake_unfold import past_arguments, present


@triton.jit
def _add_scaled_norm(x, y, scale, weight, out, eps, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    inside = i < WIDTH
    value = tl.load(x + row * WIDTH + i, mask=inside, other=0.0).to(tl.float32)
    more = tl.load(y + row * WIDTH + i, mask=inside, other=0.0).to(tl.float32)
    value += more * tl.load(scale + i, mask=inside, other=0.0).to(tl.float32)
    stored = value.to(x.dtype.element_ty)
    tl.store(x + row * WIDTH + i, stored, mask=inside)
    value = stored.to(tl.float32)
    normed = value * tl.rsqrt(tl.sum(value * value, 0) / WIDTH + eps)
    normed *= tl.load(weight + i, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * WIDTH + i, normed.to(out.dtype.element_ty), mask=inside)


def add_scaled_norm(x: Tensor, y: Tensor, scale: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Run `codec_rows.add_scaled_norm`: x, y [M, H] float -> [M, H] float."""
    rows, width = x.shape
    assert x.is_contiguous() and y.is_contiguous()
    out = torch.empty_like(x)
    _add_scaled_norm[(rows,)](
        x, y, scale, weight, out, eps, WIDTH=width, BLOCK=triton.next_power_of_2(width)
    )
    return out


@triton.jit
def _depthwise_norm(
    x,
    weight,
    bias,
    norm_weight,
    norm_bias,
    out,
    eps,
    taps,
    side,
    slots,
    steps,
    slot_stride,
    side_stride,
    CHANNELS: tl.constexpr,
    COUNT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Compute one step of a row, with all its channels."""
    PAST: tl.constexpr = COUNT - 1
    step, row = tl.program_id(0), tl.program_id(1).to(tl.int64)
    i = tl.arange(0, BLOCK)
    inside = i < CHANNELS
    old, new = present(taps, side, slots, row, slot_stride, side_stride)
    fresh = x + row * steps * CHANNELS
    total = tl.load(bias + i, mask=inside, other=0.0).to(tl.float32)
    for tap in tl.static_range(COUNT):
        at = step + tap - PAST
        source = tl.where(at < 0, old + (at + PAST) * CHANNELS + i, fresh + at * CHANNELS + i)
        value = tl.load(source, mask=inside, other=0.0)
        # This call's steps at - steps + PAST are the next call's past; the program of step 0
        # also hands on what is left of the old one, if there are fewer new steps than it has.
        if tap == PAST:
            tl.store(
                new + (at + PAST - steps) * CHANNELS + i, value, mask=inside & (at + PAST >= steps)
            )
        else:
            tl.store(
                new + (tap - steps) * CHANNELS + i,
                value,
                mask=inside & (step == 0) & (tap >= steps),
            )
        factor = tl.load(weight + tap * CHANNELS + i, mask=inside, other=0.0)
        total += value.to(tl.float32) * factor.to(tl.float32)
    centred = tl.where(inside, total - tl.sum(tl.where(inside, total, 0.0), 0) / CHANNELS, 0.0)
    normed = centred * tl.rsqrt(tl.sum(centred * centred, 0) / CHANNELS + eps)
    normed *= tl.load(norm_weight + i, mask=inside, other=0.0).to(tl.float32)
    normed += tl.load(norm_bias + i, mask=inside, other=0.0).to(tl.float32)
    target = out + (row * steps + step) * CHANNELS + i
    tl.store(target, normed.to(out.dtype.element_ty), mask=inside)


def depthwise_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    norm: tuple[Tensor, Tensor],
    eps: float,
    past: Past,
) -> Tensor:
    """Run `codec_rows.depthwise_norm`: x [B, L, C] float -> [B, L, C] float."""
    rows, steps, channels = x.shape
    assert x.is_contiguous() and weight.is_contiguous()
    out = torch.empty_like(x)
    _depthwise_norm[(steps, rows)](
        x,
        weight,
        bias,
        *norm,
        out,
        eps,
        *past_arguments(x, past, steps),
        CHANNELS=channels,
        COUNT=weight.shape[0],
        BLOCK=triton.next_power_of_2(channels),
    )
    return out


@triton.jit
def _codebook_sum(
    codes,
    table,
    out,
    BOOKS: tl.constexpr,
    ENTRIES: tl.constexpr,
    DIM: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for book in tl.static_range(BOOKS):
        code = tl.load(codes + row * BOOKS + book)
        code = tl.minimum(tl.maximum(code, 0), ENTRIES - 1) + book * ENTRIES
        total += tl.load(table + code * DIM + i, mask=i < DIM, other=0.0).to(tl.float32)
    tl.store(out + row * DIM + i, total.to(out.dtype.element_ty), mask=i < DIM)


def codebook_sum(codes: Tensor, table: Tensor) -> Tensor:
    """Run `codec_rows.codebook_sum`: codes [B, T, books] int64 -> [B, T, dim] float."""
    rows, count, books = codes.shape
    _, entries, dim = table.shape
    assert codes.is_contiguous() and table.is_contiguous()
    out = table.new_empty(rows, count, dim)
    block = min(256, triton.next_power_of_2(dim))
    _codebook_sum[(rows * count, triton.cdiv(dim, block))](
        codes, table, out, BOOKS=books, ENTRIES=entries, DIM=dim, BLOCK=block
    )
    return out


@triton.jit
def _advance(frames, side, slots, rows, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    known = i < rows
    slot = tl.load(slots + i, mask=known, other=0)
    had = tl.load(frames + slot, mask=known, other=0)
    now = tl.load(side + slot, mask=known, other=0)
    tl.store(frames + slot, had + count, mask=known)
    tl.store(side + slot, 1 - now, mask=known)


def advance(frames: Tensor, side: Tensor, slots: Tensor, count: int) -> None:
    """Run `codec_rows.advance`: frames, side [slots + 1] int64, in place; slots [B] int64."""
    rows = slots.shape[0]
    _advance[(triton.cdiv(rows, 256),)](frames, side, slots, rows, count, BLOCK=256)
