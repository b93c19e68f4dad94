"""The codec's transformer: causal, one step per frame, each frame sees a window of the past.

Every frame attends to exactly `window` keys, oldest first, with those before the start masked, so
its result does not depend on how many frames are decoded together.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from realtime_tts.model.attention import attend_window
from realtime_tts.model.codec_state import StateLayout
from realtime_tts.model.config import CodecConfig, TransformerConfig
from realtime_tts.model.layers import RMSNorm, SwiGLU, rope_frequencies, rope_tables, rotate
from realtime_tts.model.linear import Linear
from realtime_tts.model.weights import Weights


class WindowedLayer:
    """RMSNorm, attention over a window, RMSNorm, SwiGLU; both results scaled per channel."""

    def __init__(
        self,
        config: TransformerConfig,
        window: int,
        weights: Weights,
        name: str,
        layout: StateLayout,
    ) -> None:
        self._config, self._window = config, window
        hidden, width = config.hidden, config.heads * config.head_dim

        def take(part: str, *shape: int) -> Tensor:
            return weights.take(f"{name}.{part}", *shape)

        self._input_norm = RMSNorm(take("input_layernorm.weight", hidden), config.norm_eps)
        self._output_norm = RMSNorm(
            take("post_attention_layernorm.weight", hidden), config.norm_eps
        )
        projections = [take(f"self_attn.{part}_proj.weight", width, hidden) for part in "qkv"]
        self._qkv = Linear(torch.cat(projections), exact_rows=False)
        self._out = Linear(take("self_attn.o_proj.weight", hidden, width), exact_rows=False)
        # Not folded into the products, whose weights would then differ from the stored ones.
        self._out_scale = take("self_attn_layer_scale.scale", hidden)
        self._mlp_scale = take("mlp_layer_scale.scale", hidden)
        self._mlp = SwiGLU(config, weights, f"{name}.mlp", exact_rows=False)
        self._past = layout.add(window - 1, 2 * width)

    @property
    def products(self) -> tuple[Linear, ...]:
        """The layer's matrix products, in the order in which they are computed."""
        return self._qkv, self._out, self._mlp.gate_up, self._mlp.down

    def __call__(self, x: Tensor, memory: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        """Apply to x [B, T, hidden] -> same; cos, sin [B, T, 1, D]; mask [B, T, 1, window]."""
        config = self._config
        rows, frames, _ = x.shape
        fused = self._qkv(self._input_norm(x))
        fused = fused.view(rows, frames, 3 * config.heads, config.head_dim)
        turning = fused[:, :, : 2 * config.heads]
        rotate(turning, cos, sin, out=turning)
        key, value = self._windows(fused[:, :, config.heads :], memory)
        attended = attend_window(fused[:, :, : config.heads], key, value, mask)
        x = torch.addcmul(x, self._out(attended), self._out_scale)
        return torch.addcmul(x, self._mlp(self._output_norm(x)), self._mlp_scale)

    def _windows(self, keys_values: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Return each frame's window of keys and of values, views [B, T, window, heads, D], given
        new ones [B, T, 2 * heads, D]; the memory advances by T frames."""
        config = self._config
        rows, frames = keys_values.shape[:2]
        past = self._past.of(memory)
        steps = torch.cat((past, keys_values.flatten(2)), 1)
        past.copy_(steps[:, frames:])
        batch, step, _ = steps.stride()
        windows = steps.as_strided(  # overlapping
            (rows, frames, self._window, 2, config.heads, config.head_dim),
            (batch, step, step, config.heads * config.head_dim, config.head_dim, 1),
        )
        key, value = windows.unbind(3)
        return key, value


class CodecTransformer:
    """Linear in, windowed layers, norm, linear out: [B, T, latent] -> [B, T, latent]."""

    def __init__(
        self, config: CodecConfig, weights: Weights, layout: StateLayout, device: torch.device
    ) -> None:
        shape, name = config.transformer, "decoder.pre_transformer"
        hidden, latent = shape.hidden, config.latent_dim
        inwards = weights.affine(f"{name}.input_proj", hidden, latent)
        outwards = weights.affine(f"{name}.output_proj", latent, hidden)
        self._input = Linear(*inwards, exact_rows=False)
        self._layers = [
            WindowedLayer(shape, config.window, weights, f"{name}.layers.{index}", layout)
            for index in range(shape.layers)
        ]
        self._norm = RMSNorm(weights.take(f"{name}.norm.weight", hidden), shape.norm_eps)
        self._output = Linear(*outwards, exact_rows=False)
        # float64: a stream has no longest length, and large angles lose digits.
        self._frequencies = rope_frequencies(shape).to(device)
        self._ages = torch.arange(config.window, device=device).flip(0)  # oldest key first

    @property
    def products(self) -> tuple[Linear, ...]:
        """All matrix products of the transformer, in the order in which they are computed."""
        between = (each for layer in self._layers for each in layer.products)
        return self._input, *between, self._output

    def __call__(self, x: Tensor, memory: Tensor, start: Tensor) -> Tensor:
        """Apply to vectors x [B, T, latent] of new frames -> [B, T, latent]; `memory`: their rows'
        past.

        `start` [B]: number of frames that each row has had before.
        """
        frames = start.unsqueeze(1) + torch.arange(x.shape[1], device=x.device)  # [B, T]
        cos, sin = (t.unsqueeze(2) for t in rope_tables(frames, self._frequencies))
        unborn = self._ages > frames.unsqueeze(-1)  # keys from before the first frame
        mask = torch.zeros(unborn.shape, device=x.device).masked_fill_(unborn, -math.inf)
        mask = mask.unsqueeze(2)
        x = self._input(x)
        for layer in self._layers:
            x = layer(x, memory, cos, sin, mask)
        return self._output(self._norm(x))
