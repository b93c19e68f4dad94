"""The Triton kernel of `alignment.py`: a program per row, which holds all of its scores."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from realtime_tts.kernels.alignment import MOST_TEXT

_LOWEST = tl.constexpr(-3e38)
_PART = 32  # dimensions of the keys that are loaded together


def most_seen(
    query: Tensor,
    pages: Tensor,
    heads: Tensor,
    tables: Tensor,
    slots: Tensor,
    firsts: Tensor,
    counts: Tensor,
) -> Tensor:
    """Run `alignment.most_seen` as a Triton kernel: query [B, K, D] float -> [B] int32."""
    rows, count, dim = query.shape
    assert query.is_contiguous() and heads.is_contiguous() and pages[0].is_contiguous()
    assert slots.is_contiguous() and firsts.is_contiguous() and counts.is_contiguous()
    seen = counts.new_empty(rows, dtype=tables.dtype)
    if rows:
        _most_seen[(rows,)](
            query,
            pages,
            heads,
            tables,
            slots,
            firsts,
            counts,
            seen,
            dim**-0.5,
            pages.stride(0),
            pages.stride(1),
            pages.stride(3),
            tables.stride(0),
            HEADS=count,
            DIM=dim,
            SIZE=pages.shape[4],
            MOST=MOST_TEXT,
            PART=min(_PART, dim),
            num_warps=8,
        )
    return seen


@triton.jit
def _most_seen(
    query,
    pages,
    heads,
    tables,
    slots,
    firsts,
    counts,
    seen,
    scale,
    layer_stride,
    page_stride,
    head_stride,
    table_stride,
    HEADS: tl.constexpr,
    DIM: tl.constexpr,
    SIZE: tl.constexpr,
    MOST: tl.constexpr,
    PART: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    at, part = tl.arange(0, MOST), tl.arange(0, PART)
    place = tl.load(firsts + row) + at
    here = at < tl.load(counts + row)
    table = tables + tl.load(slots + row) * table_stride
    page = tl.load(table + place // SIZE, mask=here, other=0).to(tl.int64)
    key = page * page_stride + place % SIZE * DIM
    weights = tl.zeros([MOST], tl.float32)
    for head in tl.static_range(HEADS):
        layer = tl.load(heads + 2 * head).to(tl.int64)
        keys = pages + layer * layer_stride + tl.load(heads + 2 * head + 1) * head_stride
        scores = tl.zeros([MOST], tl.float32)
        for first in tl.static_range(0, DIM, PART):
            asked = tl.load(query + (row * HEADS + head) * DIM + first + part).to(tl.float32)
            found = tl.load(keys + key[:, None] + first + part, mask=here[:, None], other=0.0)
            scores += tl.sum(found.to(tl.float32) * asked, 1)
        # A page may hold the NaN of a row that failed.
        scores = tl.where(here, scores * scale, _LOWEST)
        shares = tl.exp(scores - tl.max(scores, 0))
        weights += shares / tl.sum(shares, 0)
    tl.store(seen + row, tl.argmax(weights, 0, tie_break_left=True))
