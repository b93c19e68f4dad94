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
from realtime_tts.model.alignment import See
from realtime_tts.model.config import TalkerConfig
from realtime_tts.model.fused import fused_layers, layer_weights
from realtime_tts.model.layers import DecoderLayer, RMSNorm, Rope
from realtime_tts.model.linear import Linear
from realtime_tts.model.paged_cache import PagedKVCache, PromptRows
from realtime_tts.model.state import KVCache
from realtime_tts.model.weights import Weights


class Talker:
    """Takes its tensors from `weights` (names under `talker.`). H is the hidden width."""

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
        """Let `decode_at` move few rows of a paged cache on in one launch; False if no program
        does. `watched`: the layers whose queries it tells of then. To be called before anything is
        captured."""
        layers = layer_weights(self.layers)
        if self._step is None and layers is not None:
            rope, norm = self._rope, self.norm
            model = DecoderModel(layers, norm.weight, rope.cos, rope.sin, norm.eps)
            self._step = step_program(model, watched)
        return self._step is not None

    def new_cache(self, slots: int) -> KVCache:
        return KVCache(self.config.transformer, slots, self.device, self.dtype)

    @torch.inference_mode()
    def text(self, ids: Sequence[int]) -> Tensor:
        """Text vectors [n, H] of text token ids."""
        return self.text_rows(self._indices(ids))

    def text_rows(self, ids: Tensor) -> Tensor:
        """Text vectors [n, H] of text token ids [n] that are on the device already."""
        rows = F.embedding(ids, self.text_embedding).to(self.dtype)
        return self.text_down(F.silu(self.text_up(rows)))

    @torch.inference_mode()
    def codec(self, ids: Sequence[int]) -> Tensor:
        """Codec vectors [n, H] of first codes or control ids."""
        return F.embedding(self._indices(ids), self.codec_embedding)

    @torch.inference_mode()
    def prefill(self, prompt: Tensor, slot: int, cache: KVCache) -> Tensor:
        """Run a prompt [L, H] into an empty slot; the last position's output [H]."""
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
        self, inputs: Tensor, slots: Sequence[int], cache: KVCache, see: See | None = None
    ) -> Tensor:
        """One further position for each slot: inputs [B, H] -> outputs [B, H].

        A slot may be named for several positions, in their order. `see` is told of all queries.
        """
        positions = self._indices(cache.begin(slots, 1))
        cos = self._rope.cos[positions].unsqueeze(1).to(self.dtype)
        sin = self._rope.sin[positions].unsqueeze(1).to(self.dtype)
        x = inputs
        for index, layer in enumerate(self.layers):
            query, keys_values = layer.project(x, cos, sin)
            attended = cache.attend_step(index, query, keys_values)
            if see is not None:
                see(index, query)
            x = layer.output(x, attended)
        return self.norm(x)

    # Where slots and positions are tensors: nothing below asks the host, so it can be captured.

    @torch.inference_mode()
    def decode_at(
        self,
        inputs: Tensor,
        slots: Tensor,
        positions: Tensor,
        cache: PagedKVCache,
        see: See | None = None,
    ) -> Tensor:
        """Position `positions` [B] of each slot [B]: inputs [B, H] -> outputs [B, H].

        `see` is told of the queries of all layers; where few rows are moved on by one launch, of
        those that it was prepared for, when it is over.
        """
        if self._step is not None and len(inputs) <= MOST_STEP_ROWS:
            said, queries = self._step(inputs, cache.pages, cache.tables, slots, positions)
            if see is not None:
                for layer, query in queries.items():
                    see(layer, query)
            return said
        cos, sin = self._rope.cos, self._rope.sin

        def attend(index: int, qkv: Tensor, norm: Tensor) -> Tensor:
            return cache.attend_fused(index, qkv, slots, positions, norm, cos, sin, see)

        return fused_layers(self.layers, self.norm, inputs, attend)

    @torch.inference_mode()
    def fill_at(self, inputs: Tensor, rows: PromptRows, cache: PagedKVCache) -> Tensor:
        """Several prompts' positions: inputs [N, H], whose keys and values go where `rows` says, ->
        outputs [N, H]."""
        cos, sin = self._rope.cos, self._rope.sin

        def attend(index: int, qkv: Tensor, norm: Tensor) -> Tensor:
            return cache.attend_prompt(index, qkv, rows, norm, cos, sin)

        return fused_layers(self.layers, self.norm, inputs, attend)

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """First-code logits, float32 [B, vocab], of outputs [B, H]."""
        return self.head(hidden).float()

    def _indices(self, values: Sequence[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.long, device=self.device)
