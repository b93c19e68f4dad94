"""A frame of the code predictor: all its passes, and the draw of a code behind each.

As separate kernels a pass of one row is fifty launches, each of which takes longer than reading its
weights. The CUDA kernel (`cuda_predictor_frame.py`) is one launch for all fifteen passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels.attention import decode_attention
from realtime_tts.kernels.elementwise import add_rms_norm, rms_norm, swiglu
from realtime_tts.kernels.sampling import sample
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


@dataclass(frozen=True, slots=True)
class FrameModel:
    """The code predictor's weights, of one type and contiguous."""

    layers: Sequence[LayerWeights]
    norm: Tensor
    """[h]: after the last layer."""
    heads: Sequence[Tensor]
    """[vocab, h] for each pass."""
    inputs: Sequence[Tensor]
    """[vocab, h] for each pass but the first: what it reads, by the code drawn before it."""
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


class FrameDraws(NamedTuple):
    """How B rows draw, as `kernels.sample` takes it."""

    temperature: Tensor
    """[B] float32."""
    top_k: Tensor
    """[B] int32."""
    greedy: Tensor
    """[B] bool."""
    uniform: Tensor
    """[B, passes] float32; any distance between rows."""


def plain_frame(
    x: Tensor, model: FrameModel, pages: Tensor, draws: FrameDraws
) -> tuple[Tensor, Tensor]:
    """Codes [B, passes] int64, and the logits [passes, B, vocab] they were drawn from.

    x [2 * B, h] are the inputs of positions 0 and 1, the rows of position 0 first. Keys and values
    of the rows go into pages [layers, slots, 2, kv_heads, positions, D], of which row b has page b.
    """
    rows, chosen, logits = len(x) // 2, list[Tensor](), list[Tensor]()
    for index, head in enumerate(model.heads):
        first = index + 1 if index else 0
        if index:
            x = model.inputs[index - 1][chosen[-1]]
        last = plain_pass(x, model, pages, first, 1 if index else 2)[-rows:]
        logits.append(F.linear(last, head))
        uniform = draws.uniform[:, index]
        chosen.append(
            sample.plain(logits[-1], draws.temperature, draws.top_k, draws.greedy, uniform)
        )
    return torch.stack(chosen, 1), torch.stack(logits)


def plain_pass(x: Tensor, model: FrameModel, pages: Tensor, position: int, count: int) -> Tensor:
    """x [count * B, h] at `count` positions from `position` on, through all layers and the norm.

    Every result is rounded to x's type: where separate kernels round, and the CUDA kernel.
    """
    rows = len(x) // count
    slots = torch.arange(rows, device=x.device)
    tables = slots.int().unsqueeze(1)
    places = torch.arange(position, position + count, device=x.device).repeat_interleave(rows)
    slots = slots.repeat(count)
    for layer, store in zip(model.layers, pages, strict=True):
        normed = rms_norm.plain(x, layer.input_norm, model.eps)
        qkv = F.linear(normed, layer.qkv).view(len(x), -1, model.head_dim)
        query = rope_and_store.plain(
            qkv, layer.head_norm, model.cos, model.sin, store, tables, slots, places, model.eps
        )
        attended = decode_attention.plain(query, store, tables, slots, places, 1)
        attended = F.linear(attended, layer.attention_output)
        x, normed = add_rms_norm.plain(attended, x, layer.output_norm, model.eps)
        x = x + F.linear(swiglu.plain(F.linear(normed, layer.gate_up)), layer.down)
    return rms_norm.plain(x, model.norm, model.eps)
