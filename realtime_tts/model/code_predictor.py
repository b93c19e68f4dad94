"""The code predictor: from the talker's output and first code to the other fifteen codes.

A frame is fifteen dependent passes of a small decoder over at most sixteen positions, starting anew
for every frame: talker output, first code, second code, ... Pass j writes code j + 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels import FrameDraws
from realtime_tts.kernels.first_codes import finite_rows
from realtime_tts.model.attention import attend_rows
from realtime_tts.model.config import PredictorConfig
from realtime_tts.model.layers import DecoderLayer, RMSNorm, Rope
from realtime_tts.model.linear import Linear
from realtime_tts.model.weights import Weights

Choose = Callable[[Tensor, int], Tensor]
"""Chooses codes [B] from logits [B, codebook size] and the number of the codebook (1..15)."""


class Choices:
    """A `Choose` that also reports afterwards which rows had NaN or Inf among their logits.

    `draws` says how the codes are drawn, for a kernel that can draw a whole frame. It then calls
    `drawn` instead of this object.
    """

    def __init__(self, choose: Choose, draws: FrameDraws | None = None) -> None:
        self.draws = draws
        self._choose, self._seen = choose, list[Tensor]()
        self._failed: Tensor | None = None

    def __call__(self, logits: Tensor, codebook: int) -> Tensor:
        self._seen.append(logits)
        return self._choose(logits, codebook)

    def drawn(self, failed: Tensor) -> None:
        """Record that all codes were drawn by a kernel, and which rows [B] failed."""
        self._failed = failed

    @property
    def failed(self) -> Tensor:
        """Which rows [B] failed; valid once all codes are drawn."""
        if self._failed is None:
            self._failed = ~finite_rows(torch.cat(self._seen, 1))
        return self._failed


Predict = Callable[[Tensor, Tensor, Choose], Tensor]
"""`CodePredictor.codes`, or another implementation of it."""

_Views = tuple[Tensor, Tensor, Tensor]
"""For one position and layer: where its keys and values go [B, 2, kv_heads, D], and the keys and
the values [B, kv_heads, n, D] that its query attends to."""


class CodePredictor:
    """The code predictor in plain torch, with tensors from `weights` (`talker.code_predictor.`).

    `width` is the talker's; where it differs from the predictor's own, inputs are projected. Use
    from one thread at a time: keys and values are kept during a frame.
    """

    def __init__(
        self,
        config: PredictorConfig,
        width: int,
        groups: int,
        weights: Weights,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.config, self.groups, self.dtype = config, groups, dtype
        shape, prefix = config.transformer, "talker.code_predictor"
        hidden, take = shape.hidden, weights.take
        self.projection: Linear | None = None
        if hidden != width:
            name = f"{prefix}.small_to_mtp_projection"
            self.projection = Linear(*weights.affine(name, hidden, width))
        others = range(groups - 1)
        # One table for codebooks 1..15, so that a frame's embeddings are summed in one go.
        self.embedding = torch.cat(
            [
                take(f"{prefix}.model.codec_embedding.{j}.weight", config.vocab, width)
                for j in others
            ]
        )
        # What a pass reads, by codebook; projected once here instead of in every pass.
        inputs = self.embedding if self.projection is None else self.projection(self.embedding)
        self.inputs = inputs.split(config.vocab)
        self.heads = [
            Linear(take(f"{prefix}.lm_head.{index}.weight", config.vocab, hidden))
            for index in others
        ]
        self.layers = [
            DecoderLayer(shape, weights, f"{prefix}.model.layers.{index}")
            for index in range(shape.layers)
        ]
        self.norm = RMSNorm(take(f"{prefix}.model.norm.weight", hidden), shape.norm_eps)
        rope = Rope(shape, groups, device)
        self.turns = rope.cos, rope.sin  # [16, D] float32
        self._cos, self._sin = rope.cos.to(dtype), rope.sin.to(dtype)
        self._rope = list(zip(self._cos, self._sin, strict=True))  # by position
        self._store = self._cos.new_empty(0)
        self._views = lru_cache(maxsize=16)(self._make_views)  # a batch's size changes little

    @torch.inference_mode()
    def codes(self, hidden: Tensor, first_embedding: Tensor, choose: Choose) -> Tensor:
        """Return codes 1..15 of one frame [B, 15].

        hidden [B, H] is the talker's output, first_embedding [B, H] its embedding of the first
        codes.
        """
        chosen: list[Tensor] = []
        views = self._views(hidden.shape[0])
        x = self._first_pass(hidden, first_embedding, views[:2])
        for j, head in enumerate(self.heads):
            if j > 0:
                inputs = F.embedding(chosen[-1], self.inputs[j - 1])
                x = self._pass(inputs, *self._rope[j + 1], views[j + 1])
            chosen.append(choose(head(self.norm(x)).float(), j + 1))
        return torch.stack(chosen, 1)

    def project(self, x: Tensor) -> Tensor:
        """Project inputs from the talker's width [M, H] to the predictor's own [M, h]."""
        return x if self.projection is None else self.projection(x)

    def _first_pass(
        self, hidden: Tensor, first_embedding: Tensor, views: list[list[_Views]]
    ) -> Tensor:
        """Run positions 0 and 1 together, rows of 0 first; return the output [B, h] of 1."""
        rows, shape = hidden.shape[0], self.config.transformer
        x = self.project(torch.cat((hidden, first_embedding)))
        cos, sin = (
            table[:2].repeat_interleave(rows, 0).unsqueeze(1) for table in (self._cos, self._sin)
        )
        group = shape.heads // shape.kv_heads
        for layer, (first, *_), (second, key, value) in zip(self.layers, *views, strict=True):
            query, keys_values = layer.project(x, cos, sin)
            first.copy_(keys_values[:rows])
            second.copy_(keys_values[rows:])
            # Position 0 attends to itself alone: its own values, once for every query head.
            alone = value[:, :, 0].repeat_interleave(group, 1).flatten(1)
            x = layer.output(x, torch.cat((alone, attend_rows(query[rows:], key, value))))
        return x[rows:]

    def _pass(self, x: Tensor, cos: Tensor, sin: Tensor, views: list[_Views]) -> Tensor:
        """Run one further position: x [B, h] -> [B, h]."""
        for layer, (target, key, value) in zip(self.layers, views, strict=True):
            query, keys_values = layer.project(x, cos, sin)
            target.copy_(keys_values)
            x = layer.output(x, attend_rows(query, key, value))
        return x

    def _make_views(self, rows: int) -> list[list[_Views]]:
        """Make the views by position and layer. To slice anew in every pass took a tenth of a small
        model's frame.

        All batch sizes share one store, which is as large as the largest of them.
        """
        shape = self.config.transformer
        if len(self._store) < rows:
            self._views.cache_clear()
            self._store = self._cos.new_empty(
                rows, shape.layers, 2, shape.kv_heads, self.groups, shape.head_dim
            )
        layers = self._store[:rows].unbind(1)  # each [B, 2, kv_heads, 16, D]
        return [[_views_at(layer, at) for layer in layers] for at in range(self.groups)]


def _views_at(store: Tensor, position: int) -> _Views:
    """Return the views at one position of a layer's store [B, 2, kv_heads, 16, D]."""
    key, value = store[:, :, :, : position + 1].unbind(1)
    return store[:, :, :, position], key, value
