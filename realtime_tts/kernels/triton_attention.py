"""The Triton kernels of `attention.py`: flash attention over pages.

Dao et al.: "FlashAttention", 2022; split over the sequence as in "Flash-Decoding", 2023. Softmax is
computed in powers of two, so scores are scaled by log2(e) as well.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

_PROGRAMS = 256  # wanted where a sequence is split: two for each multiprocessor of a large GPU
_ENOUGH_PROGRAMS = 128  # with which splitting gains nothing
_MOST_SPLITS = 16
_FEW_POSITIONS = 128
_TILE = 16  # the fewest rows of a tensor core's product; a smaller group of heads is padded


def decode_attention(
    query: Tensor,
    pages: Tensor,
    tables: Tensor,
    slots: Tensor,
    lengths: Tensor,
    own: int = 0,
) -> Tensor:
    """Run `attention.decode_attention`: query [B, heads, D] float -> [B, heads * D] float."""
    rows, heads, dim = query.shape
    kv_heads, page_size = pages.shape[2:4]
    _check(query, pages, heads, kv_heads)
    assert slots.is_contiguous() and lengths.is_contiguous()
    out = query.new_empty(rows, heads * dim)
    if not rows:
        return out
    splits = split_count(rows * kv_heads)
    steps, stages, warps = _loads(rows * kv_heads, splits, dim * pages.element_size())
    sums, peaks = out, out
    if splits > 1:
        sums = query.new_empty(rows, heads, splits, dim, dtype=torch.float32)
        peaks = query.new_empty(rows, heads, splits, dtype=torch.float32)
    _decode[(rows, kv_heads, splits)](
        query,
        pages,
        tables,
        slots,
        lengths,
        sums,
        peaks,
        _scale(dim),
        own,
        query.stride(0),
        query.stride(1),
        pages.stride(0),
        tables.stride(0),
        page_size,
        KEYS=kv_heads,
        GROUP=heads // kv_heads,
        DIM=dim,
        SPLITS=splits,
        ROWS=max(_TILE, triton.next_power_of_2(heads // kv_heads)),
        BLOCK=max(_TILE, triton.next_power_of_2(dim)),
        STEPS=steps,
        num_warps=warps,
        num_stages=stages,
    )
    if splits > 1:
        _write_mean(sums, peaks, out)
    return out


def _write_mean(sums: Tensor, peaks: Tensor, out: Tensor) -> None:
    """Write to out [B, heads * D] float what the splits, sums [B, heads, splits, D] and peaks
    [B, heads, splits] float32, are together."""
    rows, heads, splits, dim = sums.shape
    _combine[(rows, heads)](
        sums,
        peaks,
        out,
        HEADS=heads,
        DIM=dim,
        SPLITS=splits,
        BLOCK=triton.next_power_of_2(dim),
        num_warps=1,
    )


def prompt_attention(
    query: Tensor,
    pages: Tensor,
    tables: Tensor,
    slots: Tensor,
    starts: Tensor,
    begins: Tensor,
    most: int,
) -> Tensor:
    """Run `attention.prompt_attention`: query [N, heads, D] float -> [N, heads * D] float."""
    count, heads, dim = query.shape
    kv_heads, page_size = pages.shape[2:4]
    _check(query, pages, heads, kv_heads)
    assert slots.is_contiguous() and starts.is_contiguous() and begins.is_contiguous()
    out = query.new_empty(count, heads * dim)
    # Few positions leave multiprocessors free: then programs are small, and their loads large.
    few = count <= _FEW_POSITIONS
    steps = (64 if count <= 32 else 128) if few else 32
    queries = _TILE if few else min(64, max(_TILE, triton.next_power_of_2(most)))
    if count:
        _prompt[(triton.cdiv(most, queries), heads, len(slots) + 1)](
            query,
            pages,
            tables,
            slots,
            starts,
            begins,
            out,
            count,
            _scale(dim),
            query.stride(0),
            query.stride(1),
            pages.stride(0),
            tables.stride(0),
            page_size,
            KEYS=kv_heads,
            GROUP=heads // kv_heads,
            DIM=dim,
            QUERIES=queries,
            BLOCK=max(_TILE, triton.next_power_of_2(dim)),
            STEPS=steps,
            num_warps=4,
            num_stages=2,
        )
    return out


def split_count(programs: int) -> int:
    """Return into how many parts a sequence is split, given one program per row and key head.

    It depends on shapes alone, since a captured graph keeps it. Parts that a short sequence does
    not need end at once.
    """
    if programs >= _ENOUGH_PROGRAMS:
        return 1
    wanted = triton.cdiv(_PROGRAMS, programs)
    return min(_MOST_SPLITS, triton.next_power_of_2(wanted))


def _loads(programs: int, splits: int, key_bytes: int) -> tuple[int, int, int]:
    """Return how many positions a program loads at once, how many loads ahead, and its warps.

    This was fastest on an H200 with 60 to 1,000 positions a row. With few programs on a
    multiprocessor, each must have much under way, as far as shared memory has room for it; with
    many, small ones fit beside each other.
    """
    if splits > 1:
        return 32, 3, 4
    if programs < 512:
        return (128, 2, 4) if key_bytes <= 256 else (64, 3, 4)
    return (32, 2, 2) if programs < 1024 else (16, 2, 1)


def _scale(dim: int) -> float:
    return math.log2(math.e) / math.sqrt(dim)


def _check(query: Tensor, pages: Tensor, heads: int, kv_heads: int) -> None:
    assert heads % kv_heads == 0, f"{heads} heads in {kv_heads} groups"
    assert query.dtype == pages.dtype, f"queries are {query.dtype}, pages {pages.dtype}"
    assert query.stride(-1) == 1 and pages[0].is_contiguous()


@triton.jit
def _attend(
    query,
    cache,
    start,
    last,
    limit,
    scale,
    KEYS: tl.constexpr,
    DIM: tl.constexpr,
    BLOCK: tl.constexpr,
    STEPS: tl.constexpr,
):
    """Attend with query [ROWS, BLOCK] to the positions [start, last) of `cache`: pages, the slot's
    table, the key head, the stride and the size of a page. Row i sees positions below limit[i].

    Return the mean of the values [ROWS, BLOCK], and the softmax's peak and sum [ROWS], all float32.
    """
    pages, table, head, page_stride, page_size = cache
    at = tl.arange(0, BLOCK)[None, :]
    peak = tl.full([query.shape[0]], float("-inf"), tl.float32)
    total = tl.zeros([query.shape[0]], tl.float32)
    acc = tl.zeros([query.shape[0], BLOCK], tl.float32)
    for first in range(start, last, STEPS):
        position = first + tl.arange(0, STEPS)
        exists = position < last
        page = tl.load(table + position // page_size, mask=exists, other=0).to(tl.int64)
        place = page * page_stride + (head * page_size + position % page_size) * DIM
        mask = exists[:, None] & (at < DIM)
        key = tl.load(pages + place[:, None] + at, mask=mask, other=0.0)
        scores = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
        scores = tl.where(position[None, :] < limit[:, None], scores, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(scores, 1))
        weights = tl.exp2(scores - new_peak[:, None])
        fading = tl.exp2(peak - new_peak)
        values = pages + KEYS * page_size * DIM  # of a page: they follow its keys
        value = tl.load(values + place[:, None] + at, mask=mask, other=0.0)
        total = total * fading + tl.sum(weights, 1)
        acc = acc * fading[:, None]
        acc += tl.dot(weights.to(value.dtype), value, input_precision="ieee")
        peak = new_peak
    # Without positions, the sum is 0 and so is the result.
    return acc / tl.where(total > 0, total, 1.0)[:, None], peak, total


@triton.jit
def _decode(
    queries,
    pages,
    tables,
    slots,
    lengths,
    sums,
    peaks,
    scale,
    own,
    row_stride,
    head_stride,
    page_stride,
    table_stride,
    page_size,
    KEYS: tl.constexpr,
    GROUP: tl.constexpr,
    DIM: tl.constexpr,
    SPLITS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    STEPS: tl.constexpr,
):
    """Attend with the query heads of one key head to one split of the row's positions."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1)
    split = tl.program_id(2)
    length = tl.load(lengths + row).to(tl.int32) + own
    table = tables + tl.load(slots + row).to(tl.int64) * table_stride
    share = tl.cdiv(tl.cdiv(length, SPLITS), STEPS) * STEPS
    start = split * share
    last = tl.minimum(start + share, length)

    member = tl.arange(0, ROWS)[:, None]
    at = tl.arange(0, BLOCK)[None, :]
    mask = (member < GROUP) & (at < DIM)
    source = queries + row * row_stride + (head * GROUP + member) * head_stride + at
    query = tl.load(source, mask=mask, other=0.0)
    limit = tl.zeros([ROWS], tl.int32) + last
    cache = pages, table, head, page_stride, page_size
    mean, peak, total = _attend(query, cache, start, last, limit, scale, KEYS, DIM, BLOCK, STEPS)
    out = (row * KEYS + head) * GROUP + member
    if SPLITS == 1:
        tl.store(sums + out * DIM + at, mean.to(sums.dtype.element_ty), mask=mask)
    else:
        out = out * SPLITS + split
        tl.store(sums + out * DIM + at, mean, mask=mask)
        weight = peak + tl.log2(tl.where(total > 0, total, 1.0))  # -inf without positions
        tl.store(peaks + out, weight[:, None], mask=member < GROUP)


@triton.jit
def _combine(
    sums,
    peaks,
    out,
    HEADS: tl.constexpr,
    DIM: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Average the splits of one query head, weighted by their softmax sums."""
    head = tl.program_id(0).to(tl.int64) * HEADS + tl.program_id(1)
    split = tl.arange(0, SPLITS)
    at = tl.arange(0, BLOCK)
    weight = tl.load(peaks + head * SPLITS + split)
    peak = tl.max(weight, 0)
    # Every split of a padding row is empty: their weights are 0, not NaN.
    weight = tl.exp2(weight - tl.where(peak > float("-inf"), peak, 0.0))
    total = tl.sum(weight, 0)
    source = sums + (head * SPLITS + split[:, None]) * DIM + at[None, :]
    parts = tl.load(source, mask=at[None, :] < DIM, other=0.0)
    mean = tl.sum(parts * weight[:, None], 0) / tl.where(total > 0, total, 1.0)
    tl.store(out + head * DIM + at, mean.to(out.dtype.element_ty), mask=at < DIM)


@triton.jit(do_not_specialize=["count"])  # so that no new length compiles during a turn
def _prompt(
    queries,
    pages,
    tables,
    slots,
    starts,
    begins,
    out,
    count,
    scale,
    query_stride,
    head_stride,
    page_stride,
    table_stride,
    page_size,
    KEYS: tl.constexpr,
    GROUP: tl.constexpr,
    DIM: tl.constexpr,
    QUERIES: tl.constexpr,
    BLOCK: tl.constexpr,
    STEPS: tl.constexpr,
):
    """Attend with QUERIES positions of one query head; behind the last row, write zeros."""
    head = tl.program_id(1)
    row = tl.program_id(2).to(tl.int64)
    begin = tl.load(begins + row).to(tl.int64)
    first_step = tl.program_id(0) * QUERIES
    at = tl.arange(0, BLOCK)[None, :]
    if row == tl.num_programs(2) - 1:
        for first in range(begin + first_step, count, tl.num_programs(0) * QUERIES):
            place = (first + tl.arange(0, QUERIES))[:, None]
            target = out + (place * (KEYS * GROUP) + head) * DIM + at
            zeros = tl.zeros([QUERIES, BLOCK], out.dtype.element_ty)
            tl.store(target, zeros, mask=(place < count) & (at < DIM))
        return
    length = (tl.load(begins + row + 1) - begin).to(tl.int32)
    if first_step < length:
        step = first_step + tl.arange(0, QUERIES)
        start = tl.load(starts + row).to(tl.int32)
        table = tables + tl.load(slots + row).to(tl.int64) * table_stride
        mask = (step < length)[:, None] & (at < DIM)
        place = (begin + step)[:, None]
        source = queries + place * query_stride + head * head_stride + at
        query = tl.load(source, mask=mask, other=0.0)
        last = start + tl.minimum(length, first_step + QUERIES)
        limit = tl.minimum(start + step + 1, last)
        cache = pages, table, head // GROUP, page_stride, page_size
        mean, _, _ = _attend(query, cache, 0, last, limit, scale, KEYS, DIM, BLOCK, STEPS)
        target = out + (place * (KEYS * GROUP) + head) * DIM + at
        tl.store(target, mean.to(out.dtype.element_ty), mask=mask)
