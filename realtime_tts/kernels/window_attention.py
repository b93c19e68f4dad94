"""Attention of the codec's new frames to a window of the past, kept in a ring."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from realtime_tts.kernels.dispatch import Kernel


@Kernel
def window_attention(
    qkv: Tensor, ring: Tensor, frames: Tensor, slots: Tensor, cos: Tensor, sin: Tensor
) -> Tensor:
    """Attend with T new frames to a window of the past: qkv [B, T, 3 * heads * D] float -> [B, T,
    heads * D] float.

    `ring` [slots + 1, 2, heads, R, D] float: keys without rotation, and values, frame n at n modulo
    R; the new ones are stored there. R >= window + T - 1, so that no frame that is needed is
    overwritten. `frames` [slots + 1] int64: number of earlier frames of each slot; `slots` [B]
    int64. `cos`, `sin` [window, D / 2] float32 by age: rotary embeddings depend on distance only,
    so the queries are rotated by each key's age, and a stream has no longest length at which angles
    lose digits.
    """
    rows, new, _ = qkv.shape
    _, _, heads, size, dim = ring.shape
    query, keys_values = qkv.view(rows, new, 3, heads, dim).split((1, 2), 2)
    fresh = keys_values.permute(0, 2, 3, 1, 4)  # [B, 2, heads, T, D]
    had, device = frames[slots], qkv.device
    key, value = torch.cat((ring[slots], fresh), 3).float().unbind(1)  # [B, heads, R + T, D]
    # How many frames a key lies behind the last old frame; the new ones lie before it.
    old = (had.unsqueeze(1) - 1 - torch.arange(size, device=device)) % size
    behind = torch.cat((old, -1 - torch.arange(new, device=device).expand(rows, new)), 1)
    ages = behind.unsqueeze(1) + 1 + torch.arange(new, device=device).unsqueeze(1)  # [B, T, K]
    seen = (ages >= 0) & (ages < cos.shape[0]) & (behind < had.unsqueeze(1)).unsqueeze(1)
    within = ages.clamp(0, cos.shape[0] - 1)
    c, s = cos[within].unsqueeze(3), sin[within].unsqueeze(3)  # [B, T, K, 1, D / 2]
    low, high = query.float().chunk(2, -1)  # [B, T, 1, heads, D / 2]
    turned = torch.cat((low * c - high * s, high * c + low * s), -1)  # [B, T, K, heads, D]
    scores = torch.einsum("btkhd,bhkd->bthk", turned, key) / math.sqrt(dim)
    weights = scores.masked_fill(~seen.unsqueeze(2), -math.inf).softmax(-1)
    # A slot's ring may hold anything where nothing was written since its reset.
    value = value.masked_fill(~seen.any(1)[:, None, :, None], 0.0)
    attended = torch.einsum("bthk,bhkd->bthd", weights, value)
    places = (had.unsqueeze(1) + torch.arange(new, device=device)) % size
    ring[slots.unsqueeze(1), :, :, places] = fresh.permute(0, 3, 1, 2, 4)
    return attended.reshape(rows, new, heads * dim).to(qkv.dtype)
