"""The weights of a decoder, and all its layers in plain torch: the reference implementation of the
kernels that fuse layers."""

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
    """A layer's weights, all of one type and contiguous, in the order of their use.

    h is the hidden width, N = (heads + 2 * kv_heads) * D.
    """

    input_norm: Tensor
    """Weight of the norm before attention: [h]."""
    qkv: Tensor
    """Projection to queries, keys and values: [N, h]."""
    head_norm: Tensor
    """Weights of the norm of each query and key head: [heads + kv_heads, D]."""
    attention_output: Tensor
    """Projection of what was attended to: [h, heads * D]."""
    output_norm: Tensor
    """Weight of the norm before the MLP: [h]."""
    gate_up: Tensor
    """Projection to gate, then up: [2 * I, h]."""
    down: Tensor
    """Projection from gate times up: [h, I]."""


@dataclass(frozen=True)
class DecoderModel:
    """A decoder's weights, of one type and contiguous."""

    layers: Sequence[LayerWeights]
    norm: Tensor
    """Weight of the norm after the last layer: [h]."""
    cos: Tensor
    """Rotary table: [positions, D] float32."""
    sin: Tensor
    """Rotary table with the sign of each half: [positions, D] float32."""
    eps: float

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """Hidden width, query heads, key heads, width of a head, intermediate width."""
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
    """Run x [B, h] float at one position of each row, through all layers and the norm: [B, h]
    float.

    Keys and values go into pages [layers, pages, 2, kv_heads, page_size, D] float; tables [slots +
    1, max_pages] int32, slots and positions [B] int64 as in `kernels`. `on_queries` is called with
    each layer's rotated queries [B, heads, D] float. Every result is rounded to x's type where
    separate kernels round, and the CUDA kernels.
    """
    eps, dim = model.eps, model.cos.shape[1]
    for layer, store in zip(model.layers, pages, strict=True):
        normed = rms_norm.plain(x, layer.input_norm, eps)
        qkv = F.linear(normed, layer.qkv).view(1, len(x), -1, dim)
        query = rope_and_store.plain(
            qkv, layer.head_norm, model.cos, model.sin, store, tables, slots, positions, eps
        )
        on_queries(query)
        attended = decode_attention.plain(query, store, tables, slots, positions, 1)
        attended = F.linear(attended, layer.attention_output)
        x, normed = add_rms_norm.plain(attended.unsqueeze(0), x, layer.output_norm, eps)
        x = x + F.linear(swiglu.plain(F.linear(normed, layer.gate_up)), layer.down)
    return rms_norm.plain(x, model.norm, eps)
