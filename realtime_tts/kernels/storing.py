"""Stores keys and values in pages: from the fused product before attention, or from a copy."""

from __future__ import annotations

import torch
from torch import Tensor

from realtime_tts.kernels.dispatch import Kernel
from realtime_tts.kernels.elementwise import sum_of_parts


@Kernel
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
    """Return rotated queries [B, heads, D] float, and store the keys and values in the pages.

    parts [S, B, heads + 2 * kv_heads, D] float or float32 is the fused product in parts
    (`sum_of_parts`): queries, keys, values. Queries and keys pass an RMSNorm of each head with the
    weights norm [heads + kv_heads, D] float, and are rotated by the tables cos, sin [max_positions,
    D] float32 (`model.layers.Rope`; half-split, sin carries its sign) at the row's position. pages
    [pages, 2, kv_heads, page_size, D] float; tables [slots + 1, max_pages] int32; slots, positions
    [B] int32 or int64. Keys and values are stored at that position of the row's slot, which must
    have a page for it. A position of -1 counts as 0; with the scratch slot, it marks a padding row.
    """
    kv_heads, dim = pages.shape[2], pages.shape[4]
    qkv = sum_of_parts(parts, norm.dtype)
    heads = qkv.shape[1] - 2 * kv_heads
    places = positions.long().clamp(min=0)
    turning = qkv[:, : heads + kv_heads].float()
    scale = turning.square().mean(-1, keepdim=True).add_(eps).rsqrt_()
    turning = turning * scale * norm.float()
    turned = turning * cos[places].float().unsqueeze(1)
    turned += turning.roll(dim // 2, -1) * sin[places].float().unsqueeze(1)
    turned = turned.to(qkv.dtype)
    keys_values = torch.cat((turned[:, heads:], qkv[:, heads + kv_heads :]), 1)
    numbers, offsets = _places(pages, tables, slots, places)
    pages[numbers, :, :, offsets] = keys_values.unflatten(1, (2, kv_heads)).to(pages.dtype)
    return turned[:, :heads]


@Kernel
def store_prefix(
    keys_values: Tensor,
    firsts: Tensor,
    counts: Tensor,
    pages: Tensor,
    tables: Tensor,
    slots: Tensor,
) -> None:
    """Copy positions firsts[b] and following, counts[b] of them, of `keys_values` to the first
    positions of slot b.

    keys_values [layers, 2, kv_heads, n, D] float; firsts, counts, slots [B] int64; pages [layers,
    pages, 2, kv_heads, page_size, D] float, those of all layers; tables [slots + 1, max_pages]
    int32. Every slot has pages for these positions.
    """
    most = min(keys_values.shape[3], tables.shape[1] * pages.shape[4])
    places = torch.arange(most, device=slots.device)
    exists = places < counts.unsqueeze(1)
    taken = exists[:, :, None, None, None]
    sources = (firsts.unsqueeze(1) + places).clamp(max=keys_values.shape[3] - 1)
    for kept, into in zip(keys_values, pages, strict=True):
        numbers, offsets = _places(into, tables, slots.unsqueeze(1), places)
        # What is no position goes to the scratch page, which keeps what it has.
        numbers = numbers.where(exists, 0)
        scratch = into[0][:, :, offsets].permute(2, 0, 1, 3)
        values = kept[:, :, sources].permute(2, 3, 0, 1, 4)
        into[numbers, :, :, offsets] = values.where(taken, scratch)


def _places(
    pages: Tensor, tables: Tensor, slots: Tensor, positions: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the page, and the index in it, of each position of each slot."""
    size = pages.shape[3]
    return tables[slots.long(), positions // size].long(), positions % size
