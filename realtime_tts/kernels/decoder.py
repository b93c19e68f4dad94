"""The weights of a decoder, and all its layers in plain torch: what the kernels that join layers
compute, and their tests compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels.attention import decode_attention
from realtime_tts.kernels.elementwise import add_rms_norm, rms_norm, swiglu
from realtime_tts.kernels.storing import rope_and_store


class LayerWeights(NamedTuple):
    """A layer's weights, all of one type and contiguous, in the order they are used.

    h is the hidden width, N = (heads + 2 * kv_heads) * D.
    """

    input_norm: Tensor
    """[h]"""
    qkv: Tensor
    """[N, h]: queries, keys, values."""
    head_norm: Tensor
    """[heads + kv_heads, D]"""
    attention_output: Tensor
    """[h, heads * D]"""
    output_norm: Tensor
    """[h]"""
    gate_up: Tensor
    """[2 * I, h]: gate, then up."""
    down: Tensor
    """[h, I]"""


@dataclass(frozen=True)
class DecoderModel:
    """A decoder's weights, of one type and contiguous."""

    layers: Sequence[LayerWeights]
    norm: Tensor
    """[h]: after the last layer."""
    cos: Tensor
    """[positions, D] float32."""
    sin: Tensor
    eps: float

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """Hidden, query heads, key heads, of a head, intermediate."""
        layer, dim = self.layers[0], self.cos.shape[1]
        heads = layer.attention_output.shape[1] // dim
        return len(self.norm), heads, len(layer.head_norm) - heads, dim, layer.down.shape[1]


def plain_layers(
    x: Tensor,
    model: DecoderModel,
    pages: Tensor,
    tables: Tensor,
    slots: Tensor,
    positions: Tensor,
    on_queries: Callable[[Tensor], None] = lambda query: None,
) -> Tensor:
    """x [B, h] at one position of each row, through all layers and the norm: [B, h].

    Keys and values go into pages [layers, pages, 2, kv_heads, page_size, D]; `tables`, `slots` and
    `positions` as in `kernels`. `see` is told of each layer's rotated queries [B, heads, D]. Every
    result is rounded to x's type: where separate kernels round, and the CUDA kernels.
    """
    eps, dim = model.eps, model.cos.shape[1]
    for layer, store in zip(model.layers, pages, strict=True):
        normed = rms_norm.plain(x, layer.input_norm, eps)
        qkv = F.linear(normed, layer.qkv).view(len(x), -1, dim)
        query = rope_and_store.plain(
            qkv, layer.head_norm, model.cos, model.sin, store, tables, slots, positions, eps
        )
        on_queries(query)
        attended = decode_attention.plain(query, store, tables, slots, positions, 1)
        attended = F.linear(attended, layer.attention_output)
        x, normed = add_rms_norm.plain(attended, x, layer.output_norm, eps)
        x = x + F.linear(swiglu.plain(F.linear(normed, layer.gate_up)), layer.down)
    return rms_norm.plain(x, model.norm, eps)
