"""A position of the talker for a few rows: all its layers and the last norm.

As separate kernels a position of one row is 280 launches that take more than twice as long as
reading their weights. The CUDA kernel (`cuda_talker_step.py`) is one launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels.attention import decode_attention
from realtime_tts.kernels.elementwise import add_rms_norm, rms_norm, swiglu
from realtime_tts.kernels.predictor_frame import LayerWeights
from realtime_tts.kernels.storing import rope_and_store


@dataclass(frozen=True, slots=True)
class TalkerModel:
    """The talker's weights behind its embeddings, of one type and contiguous."""

    layers: Sequence[LayerWeights]
    norm: Tensor
    """[h]: after the last layer."""
    cos: Tensor
    """[positions, D] float32."""
    sin: Tensor
    eps: float

    @property
    def head_dim(self) -> int:
        return self.cos.shape[1]

    @property
    def query_heads(self) -> int:
        return self.layers[0].attention_output.shape[1] // self.head_dim

    @property
    def kv_heads(self) -> int:
        return len(self.layers[0].head_norm) - self.query_heads


def plain_step(
    x: Tensor, model: TalkerModel, pages: Tensor, tables: Tensor, slots: Tensor, positions: Tensor
) -> Tensor:
    """x [B, h] at one position of each row, through all layers and the norm: [B, h].

    Keys and values go into pages [layers, pages, 2, kv_heads, page_size, D]; `tables`, `slots` and
    `positions` as in `kernels`. Every result is rounded to x's type, as by the separate kernels.
    """
    for layer, store in zip(model.layers, pages, strict=True):
        normed = rms_norm.plain(x, layer.input_norm, model.eps)
        qkv = F.linear(normed, layer.qkv).view(len(x), -1, model.head_dim)
        query = rope_and_store.plain(
            qkv, layer.head_norm, model.cos, model.sin, store, tables, slots, positions, model.eps
        )
        attended = decode_attention.plain(query, store, tables, slots, positions, 1)
        attended = F.linear(attended, layer.attention_output)
        x, normed = add_rms_norm.plain(attended, x, layer.output_norm, model.eps)
        x = x + F.linear(swiglu.plain(F.linear(normed, layer.gate_up)), layer.down)
    return rms_norm.plain(x, model.norm, model.eps)
