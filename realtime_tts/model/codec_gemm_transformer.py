"""The codec's transformer over a ring of past frames: eight kernels a layer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels import rms_norm, swiglu
from realtime_tts.kernels.codec_rows import add_scaled_norm
from realtime_tts.kernels.window_attention import window_attention
from realtime_tts.model.codec_gemm_layers import Parts
from realtime_tts.model.codec_gemm_state import RingShape, Rows
from realtime_tts.model.config import CodecConfig, TransformerConfig
from realtime_tts.model.layers import rope_frequencies, rope_tables


class RingLayer:
    """Attention and SwiGLU of one layer. Each norm is in the kernel of the sum before it."""

    def __init__(self, parts: Parts, name: str, config: TransformerConfig) -> None:
        hidden, width = config.hidden, config.heads * config.head_dim

        def take(part: str, *shape: int) -> Tensor:
            return parts.take(f"{name}.{part}", *shape)

        self._eps = config.norm_eps
        self.input_norm = take("input_layernorm.weight", hidden)
        self._output_norm = take("post_attention_layernorm.weight", hidden)
        self._qkv = torch.cat(
            [take(f"self_attn.{part}_proj.weight", width, hidden) for part in "qkv"]
        )
        self._out = take("self_attn.o_proj.weight", hidden, width)
        self._out_scale = take("self_attn_layer_scale.scale", hidden)
        self._mlp_scale = take("mlp_layer_scale.scale", hidden)
        self._gate_up = torch.cat(
            [
                take(f"mlp.{part}_proj.weight", config.intermediate, hidden)
                for part in ("gate", "up")
            ]
        )
        self._down = take("mlp.down_proj.weight", hidden, config.intermediate)

    def __call__(
        self,
        x: Tensor,
        normed: Tensor,
        next_norm: Tensor,
        ring: Tensor,
        rows: Rows,
        turns: tuple[Tensor, Tensor],
    ) -> Tensor:
        """Apply to x [B * T, hidden], changed in place. `normed` is x after `input_norm`; returns
        the output after `next_norm`, of the same shape."""
        state = rows.state
        batch = rows.slots.shape[0]
        qkv = F.linear(normed, self._qkv).view(batch, normed.shape[0] // batch, -1)
        attended = window_attention(qkv, ring, state.frames, rows.slots, *turns)
        y = F.linear(attended.flatten(0, 1), self._out)
        normed = add_scaled_norm(x, y, self._out_scale, self._output_norm, self._eps)
        y = F.linear(swiglu(F.linear(normed, self._gate_up)), self._down)
        return add_scaled_norm(x, y, self._mlp_scale, next_norm, self._eps)


class RingTransformer:
    """Linear in, layers, norm, linear out: [B, T, latent] -> [B, T, latent]."""

    def __init__(self, parts: Parts, config: CodecConfig, device: torch.device) -> None:
        shape, name = config.transformer, "decoder.pre_transformer"
        hidden, latent = shape.hidden, config.latent_dim
        self.ring = RingShape(shape.layers, shape.heads, shape.head_dim, config.window)
        self._eps = shape.norm_eps
        self._input = parts.affine(f"{name}.input_proj", hidden, latent)
        self._output = parts.affine(f"{name}.output_proj", latent, hidden)
        self._layers = [
            RingLayer(parts, f"{name}.layers.{index}", shape) for index in range(shape.layers)
        ]
        norm = parts.take(f"{name}.norm.weight", hidden)
        self._next_norms = [*(layer.input_norm for layer in self._layers[1:]), norm]
        ages = torch.arange(config.window, dtype=torch.float64)
        cos, sin = rope_tables(ages, rope_frequencies(shape))
        half = shape.head_dim // 2
        # The tables' second halves: sin is negative in the first (see `rope_tables`).
        self._turns = (cos[:, half:].contiguous().to(device), sin[:, half:].contiguous().to(device))

    def __call__(self, x: Tensor, rows: Rows) -> Tensor:
        shape = x.shape
        x = F.linear(x.flatten(0, 1), *self._input)
        normed = rms_norm(x, self._layers[0].input_norm, self._eps)
        for index, (layer, norm) in enumerate(zip(self._layers, self._next_norms, strict=True)):
            ring = rows.state.ring[:, index]
            normed = layer(x, normed, norm, ring, rows, self._turns)
        return F.linear(normed, *self._output).view(shape)
