"""Attention of single queries, and of a prompt, to keys and values.

`scaled_dot_product_attention` on the CPU gives each thread a scratch buffer of its own, whose
alignment changes the last bits: a row's result depends on the rows before it. Batches therefore
use plain products and sums, which do not; a single row or prompt keeps the fast kernel.
"""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor


def attend_prompt(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attend causally: query [heads, L, D], key and value [kv_heads, L, D] -> [L, heads * D]."""
    out = F.scaled_dot_product_attention(
        query.unsqueeze(0),
        key.unsqueeze(0),
        value.unsqueeze(0),
        is_causal=True,
        enable_gqa=query.shape[0] != key.shape[0],
    )
    return out[0].transpose(0, 1).flatten(1)


def attend_row(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attend with one query of one stream: query [heads, D], key and value [kv_heads, N, D] ->
    [1, heads * D]."""
    heads, dim = query.shape
    out = F.scaled_dot_product_attention(
        query.view(1, heads, 1, dim),
        key.unsqueeze(0),
        value.unsqueeze(0),
        enable_gqa=heads != key.shape[0],
    )
    return out.view(1, heads * dim)


def attend_rows(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attend with one query per stream: query [B, heads, D], key and value [B, kv_heads, N, D] ->
    [B, heads * D]."""
    rows, heads, dim = query.shape
    if query.device.type != "cpu":
        out = F.scaled_dot_product_attention(
            query.unsqueeze(2), key, value, enable_gqa=heads != key.shape[1]
        )
        return out.view(rows, heads * dim)
    kv_heads = key.shape[1]
    grouped = query.view(rows, kv_heads, heads // kv_heads, 1, dim)
    scores = (grouped * key.unsqueeze(2)).sum(-1)  # [B, kv_heads, group, N]
    weights = scores.mul_(1 / math.sqrt(dim)).softmax(-1).unsqueeze(-1)
    return (weights * value.unsqueeze(2)).sum(-2).view(rows, heads * dim)


def attend_window(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Attend to a window of keys per query: query [B, T, heads, D], key and value [B, T, W, heads,
    D] (any strides), mask [B, T, 1, W] of 0 and -inf -> [B, T, heads * D]."""
    rows, frames, heads, dim = query.shape
    if query.device.type != "cpu":
        out = F.scaled_dot_product_attention(
            query.flatten(0, 1).unsqueeze(2),
            key.flatten(0, 1).transpose(1, 2),
            value.flatten(0, 1).transpose(1, 2),
            attn_mask=mask.flatten(0, 1).unsqueeze(1),
        )
        return out.reshape(rows, frames, heads * dim)
    scores = (query.unsqueeze(2) * key).sum(-1).mul_(1 / math.sqrt(dim))  # [B, T, W, heads]
    weights = (scores.transpose(2, 3) + mask).softmax(-1).transpose(2, 3).unsqueeze(-1)
    return (weights * value).sum(2).view(rows, frames, heads * dim)
