"""Keys and values into pages, on the way from the fused product to attention."""

from __future__ import annotations

import torch
from torch import Tensor

from realtime_tts.kernels.dispatch import Kernel


@Kernel
def rope_and_store(
    qkv: Tensor,
    norm: Tensor,
    cos: Tensor,
    sin: Tensor,
    pages: Tensor,
    tables: Tensor,
    slots: Tensor,
    positions: Tensor,
    eps: float,
) -> Tensor:
    """Rotated queries [B, heads, D]; the keys and values go into the pages.

    qkv [B, heads + 2 * kv_heads, D] is the fused product: queries, keys, values. Queries and keys
    pass an RMSNorm of each head with the weights norm [heads + kv_heads, D], and turn by the
    tables cos, sin [max_positions, D] (`model.layers.Rope`; half-split, sin carries its sign) at
    the row's position. Keys and values are stored at that position of the row's slot, which must
    have a page for it. A position of -1 counts as 0; with the scratch slot, it marks a padding row.
    """
    kv_heads, dim = pages.shape[2], pages.shape[4]
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


def _places(
    pages: Tensor, tables: Tensor, slots: Tensor, positions: Tensor
) -> tuple[Tensor, Tensor]:
    """The page and the place in it of each position of each slot."""
    size = pages.shape[3]
    return tables[slots.long(), positions // size].long(), positions % size
