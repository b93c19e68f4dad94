"""The position of a row's text that some query heads attend to most."""

from __future__ import annotations

import torch
from torch import Tensor

from realtime_tts.kernels.dispatch import Kernel

MOST_TEXT = 256
"""The most positions that are looked at: more than the text of an utterance that is spoken well."""


@Kernel
def most_seen(
    query: Tensor,
    pages: Tensor,
    heads: Tensor,
    tables: Tensor,
    slots: Tensor,
    firsts: Tensor,
    counts: Tensor,
) -> Tensor:
    """Return the position that K query heads attend to most, by the sum of their softmaxes: [B]
    int32.

    query [B, K, D] float, rotated; pages [layers, pages, 2, kv_heads, page_size, D] float; heads
    [K, 2] int32: the layer and the key head of each; tables [slots + 1, max_pages] int32; slots,
    firsts, counts [B] int32 or int64. Row b looks at counts[b] positions, `MOST_TEXT` at most, from
    firsts[b] on; the result counts from there, and is 0 for a row that has none.
    """
    size, scale = pages.shape[4], query.shape[2] ** -0.5
    steps = torch.arange(MOST_TEXT, device=query.device)
    hidden = steps >= counts.unsqueeze(1)
    places = (firsts.unsqueeze(1) + steps).masked_fill_(hidden, 0)
    found = tables[slots].gather(1, places // size).long()
    layers, key_heads = heads.long().view(-1, 2, 1, 1).unbind(1)
    keys = pages[layers, found, 0, key_heads, places.remainder(size)]  # [K, B, T, D]
    scores = torch.einsum("bkd,kbtd->bkt", query, keys).float() * scale
    # A page may hold the NaN of a row that failed.
    scores = scores.masked_fill(hidden.unsqueeze(1), torch.finfo(torch.float32).min)
    return scores.softmax(-1).sum(1).argmax(-1).int()
