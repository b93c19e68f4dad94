"""Decoder layers by the fused kernels, keys and values in pages: what a GPU runs.

It computes what `DecoderLayer.project` and `output` do, in ten kernels a layer instead of thirty:
each sum with the residual, and the norm that follows it, are one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from realtime_tts.kernels import (
    add_rms_norm,
    decode_attention,
    rms_norm,
    rope_and_store,
    swiglu,
)
from realtime_tts.model.code_predictor import Choose, CodePredictor
from realtime_tts.model.layers import DecoderLayer, RMSNorm

Attend = Callable[[int, Tensor, Tensor], Tensor]
"""From a layer's number, its fused product [M, heads + 2 * kv_heads, D] and the weights of its head
norm to what its queries attend to [M, heads * D]; keys and values are stored on the way."""


def fused_layers(
    layers: Sequence[DecoderLayer], last: RMSNorm, x: Tensor, attend: Attend
) -> Tensor:
    """Positions [M, h] through all layers and the norm `last`: [M, h]."""
    norm = layers[0].input_norm
    normed = rms_norm(x, norm.weight, norm.eps)
    for index, layer in enumerate(layers):
        qkv = layer.qkv(normed).view(len(x), -1, layer.config.head_dim)
        attended = layer.attention_output(attend(index, qkv, layer.head_norm.weight))
        norm = layer.output_norm
        x, normed = add_rms_norm(attended, x, norm.weight, norm.eps)
        wide = layer.mlp.down(swiglu(layer.mlp.gate_up(normed)))
        norm = layers[index + 1].input_norm if index + 1 < len(layers) else last
        x, normed = add_rms_norm(wide, x, norm.weight, norm.eps)
    return normed


class FusedPredictor:
    """`CodePredictor.codes` for batches of up to `rows`: every row has one page of 16 positions."""

    def __init__(self, predictor: CodePredictor, rows: int, device: torch.device) -> None:
        self._predictor, shape = predictor, predictor.config.transformer
        self._pages = torch.zeros(
            (shape.layers, rows, 2, shape.kv_heads, predictor.groups, shape.head_dim),
            device=device,
            dtype=predictor.dtype,
        )
        self._layers = self._pages.unbind(0)
        self._slots = torch.arange(rows, device=device)
        self._tables = self._slots.int().unsqueeze(1)
        positions = torch.arange(predictor.groups, device=device)
        self._positions = positions.unsqueeze(1).expand(-1, rows).contiguous()  # by pass

    @torch.inference_mode()
    def codes(
        self, hidden: Tensor, first: Tensor, first_embedding: Tensor, choose: Choose
    ) -> tuple[Tensor, Tensor]:
        """As `CodePredictor.codes`; `choose` is given logits in the model's own precision."""
        predictor, rows = self._predictor, len(hidden)
        # Positions 0 and 1 in one pass: keys and values are stored before anybody attends.
        x = predictor.project(torch.cat((hidden, first_embedding)))
        slots = self._slots[:rows].repeat(2)
        positions = self._positions[:2, :rows].flatten()
        x = self._pass(x, slots, positions)[rows:]
        chosen: list[Tensor] = []
        for j, head in enumerate(predictor.heads):
            if j > 0:
                x = predictor.inputs[j - 1].index_select(0, chosen[-1])
                x = self._pass(x, self._slots[:rows], self._positions[j + 1, :rows])
            chosen.append(choose(head(x), j + 1))
        return predictor.collect(first, first_embedding, chosen)

    def _pass(self, x: Tensor, slots: Tensor, positions: Tensor) -> Tensor:
        predictor = self._predictor
        cos, sin = predictor.turns
        eps = predictor.config.transformer.norm_eps

        def attend(index: int, qkv: Tensor, norm: Tensor) -> Tensor:
            pages, tables = self._layers[index], self._tables
            query = rope_and_store(qkv, norm, cos, sin, pages, tables, slots, positions, eps)
            return decode_attention(query, pages, tables, slots, positions, 1)

        return fused_layers(predictor.layers, predictor.norm, x, attend)
