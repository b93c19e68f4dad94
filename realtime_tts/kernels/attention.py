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
    """Attend with one query per row: query [B, heads, D] -> [B, heads * D].

    Row b attends to the first lengths[b] + own positions of its slot; `own` is 1 where `lengths`
    leaves out the query's own position. A row with none, as padding has, gets zeros.
    """
    limits = lengths.long() + own
    steps = torch.arange(tables.shape[1] * pages.shape[3], device=query.device)
    mask = (steps < limits.unsqueeze(1)).unsqueeze(1)
    return _attend(query.unsqueeze(1), pages, tables[slots.long()], mask).squeeze(1)


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
    """Causal attention of prompts whose keys and values are in the pages already.

    query [N, heads, D] -> [N, heads * D]: the prompts of B rows, one behind the other. Row b has
    the queries from begins[b] to begins[b + 1], begins [B + 1], and `most` at most; its first one
    stands at position starts[b] of its slot, and each attends to all up to its own position. What
    lies behind begins[B] is padding; its results are zeros.
    """
    steps = torch.arange(tables.shape[1] * pages.shape[3], device=query.device)
    places = torch.arange(len(query), device=query.device)
    # Rows without queries share their beginning with the next; the last of equals has the query.
    rows = torch.searchsorted(begins, places, right=True).sub_(1).clamp_(max=len(slots) - 1)
    positions = starts.long()[rows] + places - begins.long()[rows]
    real = (places < begins[-1]).unsqueeze(1)
    mask = (steps <= positions.unsqueeze(1)) & real
    return _attend(query.unsqueeze(1), pages, tables[slots.long()[rows]], mask.unsqueeze(1))[:, 0]


def _attend(query: Tensor, pages: Tensor, tables: Tensor, mask: Tensor) -> Tensor:
    """query [B, L, heads, D], tables [B, max_pages], mask [B, L, max_pages * page_size] ->
    [B, L, heads * D]: over all that a table could hold, since no shape may follow from data."""
    rows, length, heads, dim = query.shape
    kv_heads = pages.shape[2]
    found = pages[tables.long()].permute(2, 0, 3, 1, 4, 5).flatten(3, 4)
    # A weight of 0 does not hide the NaN that a failed row may have left in a page.
    seen = mask.any(1).view(1, rows, 1, -1, 1)
    key, value = found.to(query.dtype).masked_fill(~seen, 0).unbind(0)
    attended = F.scaled_dot_product_attention(
        query.transpose(1, 2),
        key,
        value,
        attn_mask=mask.unsqueeze(1),
        enable_gqa=heads != kv_heads,
    )
    # A query that sees nothing: softmax of nothing.
    attended = attended.transpose(1, 2).masked_fill(~mask.any(2)[..., None, None], 0)
    return attended.reshape(rows, length, heads * dim)
