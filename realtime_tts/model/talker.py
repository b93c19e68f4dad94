"""The talker: a decoder over codec frames that writes the first code of each.

Its input at every position is the sum of a text vector and a codec vector; its output after the
final norm goes to the codec head (first code) and to the code predictor (the other fifteen).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels import MOST_STEP_ROWS, DecoderModel, StepProgram, step_program
from realtime_tts.model.alignment import QueryObserver
from realtime_tts.model.config import TalkerConfig
from realtime_tts.model.fused import fused_layers, layer_weights
from realtime_tts.model.layers import DecoderLayer, RMSNorm, Rope
from realtime_tts.model.linear import Linear
from realtime_tts.model.paged_cache import PagedKVCache, PromptRows
from realtime_tts.model.state import KVCache
from realtime_tts.model.weights import Weights


class Talker:
    """The talker, with tensors from `weights` (names under `talker.`). H is the hidden width."""

    def __init__(
        self, config: TalkerConfig, weights: Weights, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.config, self.device, self.dtype = config, device, dtype
        shape = config.transformer
        hidden, wide = shape.hidden, config.text_hidden
        take = weights.take
        # As stored: at release size this table is a third of the model, and a row is exact in
        # any wider type.
        self.text_embedding = take(
            "talker.model.text_embedding.weight", config.text_vocab, wide, keep_dtype=True
        )
        projection = "talker.text_projection.linear_fc"
        self.text_up = Linear(*weights.affine(f"{projection}1", wide, wide))
        self.text_down = Linear(*weights.affine(f"{projection}2", hidden, wide))
        self.codec_embedding = take("talker.model.codec_embedding.weight", config.vocab, hidden)
        self.layers = [
            DecoderLayer(shape, weights, f"talker.model.layers.{index}")
            for index in range(shape.layers)
        ]
        self.norm = RMSNorm(take("talker.model.norm.weight", hidden), shape.norm_eps)
        self.head = Linear(take("talker.codec_head.weight", config.vocab, hidden))
        self._rope = Rope(shape, shape.max_positions, device)
        self._step: StepProgram | None = None

    def prepare_steps(self, watched: Sequence[int]) -> bool:
        """Let `decode_at` advance few rows of a paged cache in one launch; returns False if no
        program does that. `watched`: the layers whose queries it then reports. Call it before any
        capture."""
        layers = layer_weights(self.layers)
        if self._step is None and layers is not None:
            rope, norm = self._rope, self.norm
            model = DecoderModel(layers, norm.weight, rope.cos, rope.sin, norm.eps)
            self._step = step_program(model, watched)
        return self._step is not None

    def new_cache(self, slots: int) -> KVCache:
        """Return an empty cache of `slots` slots."""
        return KVCache(self.config.transformer, slots, self.device, self.dtype)

    @torch.inference_mode()
    def text(self, ids: Sequence[int]) -> Tensor:
        """Return text vectors [n, H] of text token ids."""
        return self.text_rows(self._indices(ids))

    def text_rows(self, ids: Tensor) -> Tensor:
        """Return text vectors [n, H] of text token ids [n] that are on the device already."""
        rows = F.embedding(ids, self.text_embedding).to(self.dtype)
        return self.text_down(F.silu(self.text_up(rows)))

    @torch.inference_mode()
    def codec(self, ids: Sequence[int]) -> Tensor:
        """Return codec vectors [n, H] of first codes or control ids."""
        return F.embedding(self._indices(ids), self.codec_embedding)

    @torch.inference_mode()
    def prefill(self, prompt: Tensor, slot: int, cache: KVCache) -> Tensor:
        """Run a prompt [L, H] into an empty slot; return the last position's output [H]."""
        length = prompt.shape[0]
        cache.begin([slot], length)
        cos, sin = self._rope.cos[:length, None], self._rope.sin[:length, None]
        cos, sin = cos.to(self.dtype), sin.to(self.dtype)
        x = prompt
        for index, layer in enumerate(self.layers):
            query, keys_values = layer.project(x, cos, sin)
            x = layer.output(x, cache.attend_prompt(index, query, keys_values))
        return self.norm(x[-1:])[0]

    @torch.inference_mode()
    def decode(
        self,
        inputs: Tensor,
        slots: Sequence[int],
        cache: KVCache,
        on_queries: QueryObserver | None = None,
    ) -> Tensor:
        """Run one further position for each slot: inputs [B, H] -> outputs [B, H].

        A slot may be named for several positions, in their order. `on_queries` is called for all
        layers.
        """
        positions = self._indices(cache.begin(slots, 1))
        cos = self._rope.cos[positions].unsqueeze(1).to(self.dtype)
        sin = self._rope.sin[positions].unsqueeze(1).to(self.dtype)
        x = inputs
        for index, layer in enumerate(self.layers):
            query, keys_values = layer.project(x, cos, sin)
            attended = cache.attend_step(index, query, keys_values)
            if on_queries is not None:
                on_queries(index, query)
            x = layer.output(x, attended)
        return self.norm(x)

    # With slots and positions as tensors: nothing below reads the host, so it can be captured.

    @torch.inference_mode()
    def decode_at(
        self,
        inputs: Tensor,
        slots: Tensor,
        positions: Tensor,
        cache: PagedKVCache,
        on_queries: QueryObserver | None,
    ) -> Tensor:
        """Run position `positions` [B] of each slot [B]: inputs [B, H] -> outputs [B, H].

        `on_queries` is called for all layers; where few rows are advanced by one launch, after it,
        for the layers that it was prepared for.
        """
        if self._step is not None and len(inputs) <= MOST_STEP_ROWS:
            said, queries = self._step(inputs, cache.pages, cache.tables, slots, positions)
            if on_queries is not None:
                for layer, query in queries.items():
                    on_queries(layer, query)
            return said
        cos, sin = self._rope.cos, self._rope.sin

        def attend(index: int, parts: Tensor, norm: Tensor) -> Tensor:
            return cache.attend_fused(index, parts, slots, positions, norm, cos, sin, on_queries)

        return fused_layers(self.layers, self.norm, inputs, attend)

    @torch.inference_mode()
    def fill_at(self, inputs: Tensor, rows: PromptRows, cache: PagedKVCache) -> Tensor:
        """Run the positions of several prompts, described by `rows`: [N, H] -> outputs [N, H]."""
        cos, sin = self._rope.cos, self._rope.sin

        def attend(index: int, parts: Tensor, norm: Tensor) -> Tensor:
            return cache.attend_prompt(index, parts, rows, norm, cos, sin)

        return fused_layers(self.layers, self.norm, inputs, attend)

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Return first-code logits [B, vocab] of outputs [B, H]."""
        return self.head(hidden)

    def _indices(self, values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.long, device=self.device)
