"""Attention to keys and values in pages: of single queries, and of prompts."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels.dispatch import Kernel


@Kernel
def decode_attention(
    query: Tensor,
    pages: Tensor,
    tables: Tensor,
    slots: Tensor,
    lengths: Tensor,
    own: int = 0,
) -> Tensor:
    """Attend with one query per row: query [B, heads, D] float -> [B, heads * D] float.

    pages [pages, 2, kv_heads, page_size, D] float; tables [slots + 1, max_pages] int32; slots,
    lengths [B] int32 or int64. Row b attends to the first lengths[b] + own positions of its slot;
    `own` is 1 where `lengths` leaves out the query's own position. A row with none, as in padding,
    gets zeros.
    """
    return _attend(query, pages, tables, slots.long(), lengths.long() + own)


@Kernel
def prompt_attention(
    query: Tensor,
    pages: Tensor,
    tables: Tensor,
    slots: Tensor,
    starts: Tensor,
    begins: Tensor,
    most: int,
) -> Tensor:
    """Attend causally in prompts whose keys and values are in the pages already.

    query [N, heads, D] float -> [N, heads * D] float: the prompts of B rows, one after the other.
    pages and tables as in `decode_attention`; slots, starts [B] and begins [B + 1] int32 or int64.
    Row b has the queries from begins[b] to begins[b + 1], at most `most`; its first one is at
    position starts[b] of its slot, and each attends to all up to its own position. Queries from
    begins[B] on are padding; their results are zeros.
    """
    places = torch.arange(len(query), device=query.device)
    # A row without queries begins where the next one does; the last of equal rows has the query.
    rows = torch.searchsorted(begins, places, right=True).sub_(1).clamp_(max=len(slots) - 1)
    limits = starts.long()[rows] + places - begins.long()[rows] + 1
    return _attend(query, pages, tables, slots.long()[rows], limits * (places < begins[-1]))


def _attend(query: Tensor, pages: Tensor, tables: Tensor, slots: Tensor, limits: Tensor) -> Tensor:
    """Attend with query [B, heads, D] -> [B, heads * D], row b to limits[b] positions of a slot."""
    rows, heads, dim = query.shape
    kv_heads, page_size = pages.shape[2:4]
    tables = held_pages(tables, limits, page_size)
    mask = torch.arange(tables.shape[1] * page_size, device=query.device) < limits.unsqueeze(1)
    found = pages[tables[slots].long()].permute(2, 0, 3, 1, 4, 5).flatten(3, 4)
    # A weight of 0 does not hide the NaN that a failed row may have left in a page.
    key, value = found.to(query.dtype).masked_fill(~mask.view(1, rows, 1, -1, 1), 0).unbind(0)
    attended = F.scaled_dot_product_attention(
        query.unsqueeze(2),
        key,
        value,
        attn_mask=mask.view(rows, 1, 1, -1),
        enable_gqa=heads != kv_heads,
    )
    # The softmax of a query that attends to no position is NaN.
    return attended.view(rows, heads * dim).masked_fill(~mask.any(1, keepdim=True), 0)


def held_pages(tables: Tensor, limits: Tensor, page_size: int) -> Tensor:
    """Return the columns of tables [B, max_pages] int32 that one of limits [B] reaches; the others
    do not change a result by a bit.

    On a GPU all are returned, since a graph may be captured there: no shape may follow from data.
    """
    if tables.is_cuda or not len(limits):
        return tables
    return tables[:, : max(1, -(-int(limits.max()) // page_size))]
