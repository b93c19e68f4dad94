"""Decoder layers by the fused kernels, with keys and values in pages, as a GPU runs them.

They compute what `DecoderLayer.project` and `output` do, in seven to ten kernels a layer instead of
thirty: each sum with the residual, and the norm that follows it, are one. Products of few rows may
come in parts, which the next kernel adds up, or with SwiGLU in them. All passes of the code
predictor over few rows, and the draws between them, are a single kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from realtime_tts.kernels import (
    MOST_FRAME_ROWS,
    FrameModel,
    FrameProgram,
    LayerWeights,
    add_rms_norm,
    decode_attention,
    few_rows,
    frame_program,
    gates_suffice,
    rms_norm,
    rope_and_store,
    split_k_product,
    swiglu,
    swiglu_product,
)
from realtime_tts.model.code_predictor import Choices, Choose, CodePredictor
from realtime_tts.model.layers import DecoderLayer, RMSNorm
from realtime_tts.model.linear import Linear

Attend = Callable[[int, Tensor, Tensor], Tensor]
"""Stores keys and values, and returns what queries attend to: from a layer's number, the parts of
its fused product [S, M, heads + 2 * kv_heads, D] and the weights of its head norm to [M, heads *
D]."""


def fused_layers(
    layers: Sequence[DecoderLayer], last: RMSNorm, x: Tensor, attend: Attend
) -> Tensor:
    """Run positions x [M, h] through all layers and the norm `last`: [M, h]."""
    norm = layers[0].input_norm
    normed = rms_norm(x, norm.weight, norm.eps)
    for index, layer in enumerate(layers):
        qkv = _parts(layer.qkv, normed).unflatten(2, (-1, layer.config.head_dim))
        attended = _parts(layer.attention_output, attend(index, qkv, layer.head_norm.weight))
        norm = layer.output_norm
        x, normed = add_rms_norm(attended, x, norm.weight, norm.eps)
        wide = _parts(layer.mlp.down, _gated(layer.mlp.gate_up, normed))
        norm = layers[index + 1].input_norm if index + 1 < len(layers) else last
        x, normed = add_rms_norm(wide, x, norm.weight, norm.eps)
    return normed


def _parts(linear: Linear, x: Tensor) -> Tensor:
    """Return a product of x [M, K] in parts whose sum it is: [S, M, N]."""
    weight = _few_rows_weight(linear, x)
    return linear(x).unsqueeze(0) if weight is None else split_k_product(x, weight)


def _gated(gate_up: Linear, x: Tensor) -> Tensor:
    """Return SwiGLU of the product of x [M, K] with gate and up: [M, I]."""
    weight = _few_rows_weight(gate_up, x)
    if weight is None or not gates_suffice(weight):
        return swiglu(gate_up(x))
    return swiglu_product(x, weight)


def _few_rows_weight(linear: Linear, x: Tensor) -> Tensor | None:
    """Return the weight for which kernels for few rows serve x [M, K]; None if `linear` does."""
    weight = linear.weight
    if weight is None or linear.bias is not None or not few_rows(x, weight):
        return None
    return weight


def layer_weights(layers: Sequence[DecoderLayer]) -> list[LayerWeights] | None:
    """Return the layers as the kernels that fuse several of them take them; None if weights are
    packed.

    The weights are shared with the layers, not copied.
    """
    if not _plain([linear for layer in layers for linear in layer.products]):
        return None
    return [
        LayerWeights(
            layer.input_norm.weight,
            _weight(layer.qkv),
            layer.head_norm.weight,
            _weight(layer.attention_output),
            layer.output_norm.weight,
            _weight(layer.mlp.gate_up),
            _weight(layer.mlp.down),
        )
        for layer in layers
    ]


def frame_model(predictor: CodePredictor) -> FrameModel | None:
    """Return the predictor as `kernels.predictor_frame` takes it; None if weights are packed."""
    layers = layer_weights(predictor.layers)
    if layers is None or not _plain(predictor.heads):
        return None
    norm, (cos, sin) = predictor.norm, predictor.turns
    heads = [_weight(head) for head in predictor.heads]
    inputs = predictor.inputs[: len(heads) - 1]
    return FrameModel(layers, norm.weight, cos, sin, norm.eps, heads, inputs)


def _plain(products: Sequence[Linear]) -> bool:
    return all(linear.weight is not None and linear.bias is None for linear in products)


def _weight(linear: Linear) -> Tensor:
    """Return the weight [N, K] of a product that is not packed."""
    assert linear.weight is not None
    return linear.weight


class FusedPredictor:
    """`CodePredictor.codes` for batches of up to `rows`: every row has one page of 16 positions.

    Small batches make the whole frame in one launch, where there is a program for it
    (`kernels.frame_program`) and a kernel can draw the codes.
    """

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
        self._whole = self._program()

    def _program(self) -> FrameProgram | None:
        model = frame_model(self._predictor)
        return None if model is None else frame_program(model)

    @torch.inference_mode()
    def codes(self, hidden: Tensor, first_embedding: Tensor, choose: Choose) -> Tensor:
        """Return codes 1..15 of a frame, with the arguments of `CodePredictor.codes`.

        `choose` gets logits in the model's own precision.
        """
        predictor = self._predictor
        # Positions 0 and 1 in one pass: keys and values are stored before attention reads them.
        x = predictor.project(torch.cat((hidden, first_embedding)))
        if (
            self._whole is not None
            and isinstance(choose, Choices)
            and choose.draws is not None
            and len(hidden) <= MOST_FRAME_ROWS
        ):
            codes, failed = self._whole(x, self._pages, choose.draws)
            choose.drawn(failed)
            return codes
        chosen: list[Tensor] = []
        for j in range(len(predictor.heads)):
            if j > 0:
                x = predictor.inputs[j - 1].index_select(0, chosen[-1])
            chosen.append(choose(self._logits(x, j, len(hidden)), j + 1))
        return torch.stack(chosen, 1)

    def _logits(self, x: Tensor, j: int, rows: int) -> Tensor:
        """Return the logits of pass `j` [rows, vocab], computed by a kernel for each operation."""
        count = 2 if j == 0 else 1
        slots = self._slots[:rows].repeat(count)
        # Of a single row, flatten() alone is a view with gaps, which kernels would misread.
        positions = self._positions[j + 2 - count : j + 2, :rows].flatten().contiguous()
        return self._predictor.heads[j](self._pass(x, slots, positions)[-rows:])

    def _pass(self, x: Tensor, slots: Tensor, positions: Tensor) -> Tensor:
        predictor = self._predictor
        cos, sin = predictor.turns
        eps = predictor.config.transformer.norm_eps

        def attend(index: int, parts: Tensor, norm: Tensor) -> Tensor:
            pages, tables = self._layers[index], self._tables
            query = rope_and_store(parts, norm, cos, sin, pages, tables, slots, positions, eps)
            return decode_attention(query, pages, tables, slots, positions, 1)

        return fused_layers(predictor.layers, predictor.norm, x, attend)

    @property
    def persistent(self) -> bool:
        """Whether there is a kernel that makes the whole frame of few rows."""
        return self._whole is not None
