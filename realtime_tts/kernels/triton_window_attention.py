"""The Triton kernel of `window_attention.py`: one program for a row, a head and a frame."""

from __future__ import annotations

import math

import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _fold(
    query,
    keys,
    values,
    age,
    seen,
    cos,
    sin,
    running,
    HALF: tl.constexpr,
    HALF_BLOCK: tl.constexpr,
    DIM_BLOCK: tl.constexpr,
):
    """Add keys [N], whose ages rotate the query: one step of a softmax that is done in pieces.
    `running` is its peak, its sum and the values' weighted sum [DIM_BLOCK]."""
    low, high = query
    best, total, mixed = running
    i = tl.arange(0, HALF_BLOCK)[None, :]
    mask = seen[:, None] & (i < HALF)
    c = tl.load(cos + age[:, None] * HALF + i, mask=mask, other=0.0)
    s = tl.load(sin + age[:, None] * HALF + i, mask=mask, other=0.0)
    key_low = tl.load(keys[:, None] + i, mask=mask, other=0.0).to(tl.float32)
    key_high = tl.load(keys[:, None] + HALF + i, mask=mask, other=0.0).to(tl.float32)
    products = (low * c - high * s) * key_low + (high * c + low * s) * key_high
    scores = tl.where(seen, tl.sum(products, 1), float("-inf"))
    top = tl.maximum(best, tl.max(scores, 0))
    weights = tl.exp(scores - top)
    fade = tl.exp(best - top)
    d = tl.arange(0, DIM_BLOCK)[None, :]
    inside = seen[:, None] & (d < 2 * HALF)
    value = tl.load(values[:, None] + d, mask=inside, other=0.0).to(tl.float32)
    mixed = mixed * fade + tl.sum(weights[:, None] * value, 0)
    return top, total * fade + tl.sum(weights, 0), mixed


@triton.jit
def _fold_new(
    query,
    tokens,
    frame,
    cos,
    sin,
    running,
    HEADS: tl.constexpr,
    WINDOW: tl.constexpr,
    HALF: tl.constexpr,
    HALF_BLOCK: tl.constexpr,
    DIM_BLOCK: tl.constexpr,
    NEW: tl.constexpr,
):
    """Add the keys of the new frames that frame number `frame` of them sees."""
    WIDTH: tl.constexpr = HEADS * 2 * HALF
    j = tl.arange(0, NEW)
    keys = tokens + j * (3 * WIDTH) + WIDTH
    age = frame - j
    seen = (age >= 0) & (age < WINDOW)
    return _fold(
        query, keys, keys + WIDTH, age, seen, cos, sin, running, HALF, HALF_BLOCK, DIM_BLOCK
    )


@triton.jit
def _ages(place, had, frame, WINDOW: tl.constexpr, RING: tl.constexpr):
    """Return how many frames before new frame number `frame` the old ones in these places of a ring
    are, and which of them it sees. The slot had `had` frames."""
    behind = (had + (RING - 1) - place) % RING  # the last old frame
    age = behind + 1 + frame
    return age, (place < RING) & (behind < had) & (age < WINDOW)


@triton.jit
def _halves(token, scale, HALF: tl.constexpr, HALF_BLOCK: tl.constexpr):
    """Return the halves of a query, scaled, each [1, HALF_BLOCK] float32."""
    i = tl.arange(0, HALF_BLOCK)
    low = tl.load(token + i, mask=i < HALF, other=0.0).to(tl.float32) * scale
    high = tl.load(token + HALF + i, mask=i < HALF, other=0.0).to(tl.float32) * scale
    return low[None, :], high[None, :]


@triton.jit
def _remember(
    token,
    old,
    place,
    HEADS: tl.constexpr,
    RING: tl.constexpr,
    DIM: tl.constexpr,
    DIM_BLOCK: tl.constexpr,
):
    """Write the key and the value that follow a token's query to their place in a slot's ring."""
    d = tl.arange(0, DIM_BLOCK)
    inside = d < DIM
    key = tl.load(token + HEADS * DIM + d, mask=inside)
    value = tl.load(token + 2 * HEADS * DIM + d, mask=inside)
    tl.store(old + place * DIM + d, key, mask=inside)
    tl.store(old + (HEADS * RING + place) * DIM + d, value, mask=inside)


@triton.jit
def _attend(
    qkv,
    ring,
    frames,
    slots,
    cos,
    sin,
    out,
    count,
    slot_stride,
    scale,
    HEADS: tl.constexpr,
    WINDOW: tl.constexpr,
    RING: tl.constexpr,
    HALF: tl.constexpr,
    HALF_BLOCK: tl.constexpr,
    DIM_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr,
    NEW: tl.constexpr,
):
    """Attend with one head of one new frame of a row. Blocks are the next powers of two."""
    DIM: tl.constexpr = 2 * HALF
    row, head, frame = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    slot = tl.load(slots + row)
    had = tl.load(frames + slot)
    tokens = qkv + row * count * (3 * HEADS * DIM) + head * DIM
    token = tokens + frame * (3 * HEADS * DIM)
    query = _halves(token, scale, HALF, HALF_BLOCK)

    # The new frames first: a frame sees itself, so that the largest score is finite from here on.
    running = float("-inf"), 0.0, tl.zeros((DIM_BLOCK,), tl.float32)
    running = _fold_new(
        query, tokens, frame, cos, sin, running, HEADS, WINDOW, HALF, HALF_BLOCK, DIM_BLOCK, NEW
    )
    old = ring + slot * slot_stride + head * (RING * DIM)
    for first in range(0, RING, BLOCK):
        place = first + tl.arange(0, BLOCK)
        age, seen = _ages(place, had, frame, WINDOW, RING)
        keys = old + place * DIM
        values = keys + HEADS * RING * DIM
        running = _fold(
            query, keys, values, age, seen, cos, sin, running, HALF, HALF_BLOCK, DIM_BLOCK
        )

    place = (had + frame) % RING
    _remember(token, old, place, HEADS, RING, DIM, DIM_BLOCK)
    _, total, mixed = running
    d = tl.arange(0, DIM_BLOCK)
    result = out + (row * count + frame) * (HEADS * DIM) + head * DIM
    tl.store(result + d, (mixed / total).to(out.dtype.element_ty), mask=d < DIM)


def window_attention(
    qkv: Tensor, ring: Tensor, frames: Tensor, slots: Tensor, cos: Tensor, sin: Tensor
) -> Tensor:
    """Run `window_attention.window_attention`: [B, T, 3 * heads * D] -> [B, T, heads * D] float."""
    rows, count, _ = qkv.shape
    _, _, heads, size, dim = ring.shape
    assert qkv.is_contiguous() and ring[0].is_contiguous() and qkv.dtype is ring.dtype
    assert dim % 2 == 0 and size >= cos.shape[0] + count - 1
    out = qkv.new_empty(rows, count, heads * dim)
    # Few programs load all keys at once; many hide each other's waiting for memory.
    block, warps = (128, 4) if rows * heads * count <= 256 else (32, 2)
    _attend[(rows, heads, count)](
        qkv,
        ring,
        frames,
        slots,
        cos,
        sin,
        out,
        count,
        ring.stride(0),
        1 / math.sqrt(dim),
        HEADS=heads,
        WINDOW=cos.shape[0],
        RING=size,
        HALF=dim // 2,
        HALF_BLOCK=triton.next_power_of_2(dim // 2),
        DIM_BLOCK=triton.next_power_of_2(dim),
        BLOCK=block,
        NEW=max(2, triton.next_power_of_2(count)),
        num_warps=warps,
    )
    return out
