"""The Triton kernels of `storing.py`."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from realtime_tts.kernels.triton_elementwise import load_sum

_HEADS = 8  # of a program: enough work for four warps, and enough programs for one row
_POSITIONS = 16


def rope_and_store(
    parts: Tensor,
    norm: Tensor,
    cos: Tensor,
    sin: Tensor,
    pages: Tensor,
    tables: Tensor,
    slots: Tensor,
    positions: Tensor,
    eps: float,
) -> Tensor:
    """Run `storing.rope_and_store`: parts [S, B, heads + 2 * kv_heads, D] -> [B, heads, D]
    float."""
    count, rows, total, dim = parts.shape
    kv_heads, page_size = pages.shape[2:4]
    heads = total - 2 * kv_heads
    assert parts.stride(3) == 1 and norm.is_contiguous() and dim % 2 == 0
    assert cos.is_contiguous() and sin.is_contiguous() and pages[0].is_contiguous()
    assert slots.is_contiguous() and positions.is_contiguous()
    query = norm.new_empty(rows, heads, dim)
    if rows:
        _rope_and_store[(rows, triton.cdiv(total, _HEADS))](
            parts,
            norm,
            cos,
            sin,
            pages,
            tables,
            slots,
            positions,
            query,
            eps,
            parts.stride(0),
            parts.stride(1),
            parts.stride(2),
            pages.stride(0),
            tables.stride(0),
            page_size,
            PARTS=count,
            QUERIES=heads,
            KEYS=kv_heads,
            HALF=dim // 2,
            BLOCK=triton.next_power_of_2(dim // 2),
            HEADS=_HEADS,
            num_warps=4,
        )
    return query


def store_prefix(
    keys_values: Tensor,
    firsts: Tensor,
    counts: Tensor,
    pages: Tensor,
    tables: Tensor,
    slots: Tensor,
) -> None:
    """Run `storing.store_prefix`: keys_values [layers, 2, kv_heads, n, D] float."""
    layers, _, kv_heads, count, dim = keys_values.shape
    assert keys_values.is_contiguous() and pages[0].is_contiguous() and slots.is_contiguous()
    assert firsts.is_contiguous() and counts.is_contiguous() and keys_values.dtype == pages.dtype
    if count and len(slots):
        _store_prefix[(layers * 2 * kv_heads, len(slots))](
            keys_values,
            firsts,
            counts,
            pages,
            tables,
            slots,
            count,
            pages.stride(0),
            pages.stride(1),
            tables.stride(0),
            pages.shape[4],
            PLANES=2 * kv_heads,
            DIM=dim,
            BLOCK=triton.next_power_of_2(dim),
            POSITIONS=_POSITIONS,
            num_warps=4,
        )


@triton.jit(do_not_specialize=["count"])  # so that no new length compiles during a turn
def _store_prefix(
    source,
    firsts,
    counts,
    pages,
    tables,
    slots,
    count,
    layer_stride,
    page_stride,
    table_stride,
    page_size,
    PLANES: tl.constexpr,
    DIM: tl.constexpr,
    BLOCK: tl.constexpr,
    POSITIONS: tl.constexpr,
):
    """Copy the positions of one slot, of the keys or the values of one head."""
    plane = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1)
    first = tl.load(firsts + row).to(tl.int64)
    last = tl.load(counts + row).to(tl.int32)
    table = tables + tl.load(slots + row).to(tl.int64) * table_stride
    at = tl.arange(0, BLOCK)[None, :]
    for begin in range(0, last, POSITIONS):
        position = begin + tl.arange(0, POSITIONS)
        exists = position < last
        mask = exists[:, None] & (at < DIM)
        kept = tl.load(source + ((plane * count + first + position) * DIM)[:, None] + at, mask=mask)
        page = tl.load(table + position // page_size, mask=exists, other=0).to(tl.int64)
        place = (plane % PLANES) * page_size + position % page_size
        target = plane // PLANES * layer_stride + page * page_stride + place * DIM
        tl.store(pages + target[:, None] + at, kept, mask=mask)


@triton.jit
def _turned(first, second, weights, cos, sin, position, at, turning, eps, HALF: tl.constexpr):
    """Return the halves of heads after norm and rotation; only those that are `turning` change."""
    scale = tl.rsqrt(tl.sum(first * first + second * second, 1) / (2 * HALF) + eps)[:, None]
    x = first * scale * tl.load(weights, mask=turning, other=0.0).to(tl.float32)
    y = second * scale * tl.load(weights + HALF, mask=turning, other=0.0).to(tl.float32)
    # The second half of the signed sine is the sine itself.
    angle = position * (2 * HALF) + at
    c = tl.load(cos + angle, mask=at < HALF, other=0.0).to(tl.float32)
    s = tl.load(sin + angle + HALF, mask=at < HALF, other=0.0).to(tl.float32)
    return tl.where(turning, x * c - y * s, first), tl.where(turning, y * c + x * s, second)


@triton.jit
def _rope_and_store(
    parts,
    norm,
    cos,
    sin,
    pages,
    tables,
    slots,
    positions,
    query,
    eps,
    part_stride,
    row_stride,
    head_stride,
    page_stride,
    table_stride,
    page_size,
    PARTS: tl.constexpr,
    QUERIES: tl.constexpr,
    KEYS: tl.constexpr,
    HALF: tl.constexpr,
    BLOCK: tl.constexpr,
    HEADS: tl.constexpr,
):
    """Process HEADS heads of a row, each as its two halves [HEADS, BLOCK]."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)[:, None]
    at = tl.arange(0, BLOCK)[None, :]
    exists = (head < QUERIES + 2 * KEYS) & (at < HALF)
    turning = (head < QUERIES + KEYS) & (at < HALF)
    position = tl.maximum(tl.load(positions + row).to(tl.int64), 0)
    slot = tl.load(slots + row).to(tl.int64)

    source = parts + row * row_stride + head * head_stride + at
    first = load_sum(source, part_stride, exists, query, PARTS)
    second = load_sum(source + HALF, part_stride, exists, query, PARTS)
    weights = norm + head * (2 * HALF) + at
    first, second = _turned(first, second, weights, cos, sin, position, at, turning, eps, HALF)

    target = query + (row * QUERIES + head) * (2 * HALF) + at
    tl.store(target, first.to(query.dtype.element_ty), mask=exists & (head < QUERIES))
    tl.store(target + HALF, second.to(query.dtype.element_ty), mask=exists & (head < QUERIES))
    # Keys, then values: the order in the product is that in a page.
    page = tl.load(tables + slot * table_stride + position // page_size).to(tl.int64)
    place = (head - QUERIES) * page_size + position % page_size
    target = pages + page * page_stride + place * (2 * HALF) + at
    stored = exists & (head >= QUERIES)
    tl.store(target, first.to(pages.dtype.element_ty), mask=stored)
    tl.store(target + HALF, second.to(pages.dtype.element_ty), mask=stored)
