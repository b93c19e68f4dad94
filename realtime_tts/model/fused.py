"""Decoder layers by the fused kernels, keys and values in pages: what a GPU runs.

It computes what `DecoderLayer.project` and `output` do, in ten kernels a layer instead of thirty:
each sum with the residual, and the norm that follows it, are one. A pass of the code predictor over
few rows is a single kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from realtime_tts.kernels import (
    add_rms_norm,
    decode_attention,
    predictor_pass,
    rms_norm,
    rope_and_store,
    swiglu,
)
from realtime_tts.kernels.predictor_pass import (
    MOST_PASS_ROWS,
    PassLayer,
    PassModel,
    pass_fits,
)
from realtime_tts.model.code_predictor import Choose, CodePredictor
from realtime_tts.model.layers import DecoderLayer, RMSNorm
from realtime_tts.model.linear import Linear

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


def pass_model(predictor: CodePredictor, programs: int) -> PassModel | None:
    """The predictor as `predictor_pass` takes it; None if that cannot run it.

    The weights stay where they are, so the predictor's layers and this share them.
    """
    products = [linear for layer in predictor.layers for linear in layer.products]
    if any(linear.weight is None or linear.bias is not None for linear in products):
        return None
    layers = [
        PassLayer(
            layer.input_norm.weight,
            _weight(layer.qkv),
            layer.head_norm.weight,
            _weight(layer.attention_output),
            layer.output_norm.weight,
            _weight(layer.mlp.gate_up),
            _weight(layer.mlp.down),
        )
        for layer in predictor.layers
    ]
    norm, (cos, sin) = predictor.norm, predictor.turns
    if any(head.weight is None or head.bias is not None for head in predictor.heads):
        return None
    model = PassModel(layers, norm.weight, cos, sin, norm.eps, programs)
    return model if pass_fits(model, predictor.config.vocab) else None


def _weight(linear: Linear) -> Tensor:
    """The weight [N, K] of a product that is not packed."""
    assert linear.weight is not None
    return linear.weight


def _multiprocessors(device: torch.device) -> int:
    """How many multiprocessors a GPU has; 0 for any other device."""
    if device.type != "cuda":
        return 0
    return torch.cuda.get_device_properties(device).multi_processor_count


class FusedPredictor:
    """`CodePredictor.codes` for batches of up to `rows`: every row has one page of 16 positions.

    Small batches make each pass in one launch (`kernels.predictor_pass`) of so many `programs`: as
    many as a GPU has multiprocessors if not said otherwise, 0 for never. Where the sizes do not
    fit, and on a CPU, it is never.
    """

    def __init__(
        self,
        predictor: CodePredictor,
        rows: int,
        device: torch.device,
        *,
        programs: int | None = None,
    ) -> None:
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
        if programs is None:
            programs = _multiprocessors(device)
        self._whole = pass_model(predictor, programs) if programs else None

    @torch.inference_mode()
    def codes(
        self, hidden: Tensor, first: Tensor, first_embedding: Tensor, choose: Choose
    ) -> tuple[Tensor, Tensor]:
        """The other codes of a frame, as `CodePredictor.codes` gives them.

        `choose` is given logits in the model's own precision.
        """
        predictor, rows = self._predictor, len(hidden)
        # Positions 0 and 1 in one pass: keys and values are stored before anybody attends.
        x = predictor.project(torch.cat((hidden, first_embedding)))
        chosen: list[Tensor] = []
        for j in range(len(predictor.heads)):
            if j > 0:
                x = predictor.inputs[j - 1].index_select(0, chosen[-1])
            chosen.append(choose(self._logits(x, j, rows), j + 1))
        return predictor.collect(first, first_embedding, chosen)

    def _logits(self, x: Tensor, j: int, rows: int) -> Tensor:
        """Compute the logits of pass `j` [rows, vocab].

        The pass uses up its inputs x, which in pass 0 are those of two positions.
        """
        count = 2 if j == 0 else 1
        head = self._predictor.heads[j]
        if self._whole is not None and 2 * rows <= MOST_PASS_ROWS:
            position = j + 2 - count
            return predictor_pass(x, self._whole, _weight(head), self._pages, position, count)
        slots = self._slots[:rows].repeat(count)
        # Of a single row, flatten() alone is a view with gaps, which kernels would misread.
        positions = self._positions[j + 2 - count : j + 2, :rows].flatten().contiguous()
        return head(self._pass(x, slots, positions)[-rows:])

    def _pass(self, x: Tensor, slots: Tensor, positions: Tensor) -> Tensor:
        predictor = self._predictor
        cos, sin = predictor.turns
        eps = predictor.config.transformer.norm_eps

        def attend(index: int, qkv: Tensor, norm: Tensor) -> Tensor:
            pages, tables = self._layers[index], self._tables
            query = rope_and_store(qkv, norm, cos, sin, pages, tables, slots, positions, eps)
            return decode_attention(query, pages, tables, slots, positions, 1)

        return fused_layers(predictor.layers, predictor.norm, x, attend)
