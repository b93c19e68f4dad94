"""What talker, code predictor and codec transformer share: RMSNorm, RoPE, a decoder layer.

A layer is split around attention: `project` returns rotated queries, keys and values, the caller
attends with its own cache, `output` does the rest. Weights that read the same input are fused.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.model.config import TransformerConfig
from realtime_tts.model.linear import Linear
from realtime_tts.model.weights import Weights


class RMSNorm:
    """x / rms(x) * weight over the last axis; the statistics are float32, the product is not."""

    def __init__(self, weight: Tensor, eps: float) -> None:
        self.weight, self.eps = weight, eps
        self._eps = torch.tensor([eps], device=weight.device)
        self._mean = 1 / weight.shape[-1]

    def __call__(self, x: Tensor) -> Tensor:
        if x.dtype is not torch.float32:
            return self._scaled(x.float()).to(x.dtype).mul_(self.weight)
        return self._scaled(x).mul_(self.weight)

    def _scaled(self, x: Tensor) -> Tensor:
        norm = torch.linalg.vector_norm(x, 2, -1, True)
        # mean(x²) + eps, from the norm: no operation over all of x.
        scale = torch.addcmul(self._eps, norm, norm, value=self._mean)
        return x * scale.rsqrt_()


class Rope:
    """Rotary embedding tables, half-split: channel i rotates with channel i + head_dim / 2.

    `cos`, `sin` [positions, head_dim] float32; `sin` carries the sign of the half it belongs to, so
    that rotation is x * cos + roll(x) * sin. Angles are computed in float32, as upstream does.
    """

    def __init__(self, config: TransformerConfig, positions: int, device: torch.device) -> None:
        frequencies = rope_frequencies(config).to(device=device, dtype=torch.float32)
        steps = torch.arange(positions, device=device, dtype=torch.float32)
        self.cos, self.sin = rope_tables(steps, frequencies)


def rope_frequencies(config: TransformerConfig) -> Tensor:
    """Return theta^(-2i / head_dim), float64 [head_dim / 2]."""
    powers = torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim
    return config.rope_theta**-powers


def rope_tables(positions: Tensor, frequencies: Tensor) -> tuple[Tensor, Tensor]:
    """Return cos and signed sin, float32 [..., head_dim], for positions [...]."""
    angles = positions.unsqueeze(-1) * frequencies
    sin = angles.sin()
    cos = angles.cos()
    return torch.cat((cos, cos), -1).float(), torch.cat((-sin, sin), -1).float()


def rotate(x: Tensor, cos: Tensor, sin: Tensor, out: Tensor) -> None:
    """Rotate x [..., head_dim] by tables that broadcast to it, into `out`, which may be x."""
    half = x.shape[-1] // 2
    torch.addcmul(x * cos, x.roll(half, -1), sin, out=out)


class SwiGLU:
    """down(silu(gate(x)) * up(x)) over the last axis, gate and up in one product."""

    def __init__(
        self, config: TransformerConfig, weights: Weights, name: str, *, exact_rows: bool = True
    ) -> None:
        wide, hidden, take = config.intermediate, config.hidden, weights.take
        gate_up = [take(f"{name}.{part}_proj.weight", wide, hidden) for part in ("gate", "up")]
        self.gate_up = Linear(torch.cat(gate_up), exact_rows=exact_rows)
        self.down = Linear(take(f"{name}.down_proj.weight", hidden, wide), exact_rows=exact_rows)

    def __call__(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up(x).chunk(2, -1)
        return self.down(F.silu(gate).mul_(up))


class DecoderLayer:
    """One layer of talker or code predictor."""

    def __init__(self, config: TransformerConfig, weights: Weights, prefix: str) -> None:
        self.config = config
        hidden, dim = config.hidden, config.head_dim
        queries, keys = config.heads * dim, config.kv_heads * dim

        def take(name: str, *shape: int) -> Tensor:
            return weights.take(f"{prefix}.{name}.weight", *shape)

        eps = config.norm_eps
        self.input_norm = RMSNorm(take("input_layernorm", hidden), eps)
        self.output_norm = RMSNorm(take("post_attention_layernorm", hidden), eps)
        sizes = {"q": queries, "k": keys, "v": keys}
        qkv = [take(f"self_attn.{part}_proj", size, hidden) for part, size in sizes.items()]
        self.qkv = Linear(torch.cat(qkv))
        q_norm, k_norm = take("self_attn.q_norm", dim), take("self_attn.k_norm", dim)
        per_head = (q_norm.expand(config.heads, dim), k_norm.expand(config.kv_heads, dim))
        self.head_norm = RMSNorm(torch.cat(per_head), eps)  # [heads + kv_heads, head_dim]
        self.attention_output = Linear(take("self_attn.o_proj", hidden, queries))
        self.mlp = SwiGLU(config, weights, f"{prefix}.mlp")

    @property
    def products(self) -> tuple[Linear, ...]:
        """The layer's matrix products, in the order in which they are computed."""
        return self.qkv, self.attention_output, self.mlp.gate_up, self.mlp.down

    def project(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Return queries [M, heads, D] and keys with values [M, 2, kv_heads, D] of x [M, hidden].

        `cos`, `sin` [M, 1, D]. Keys and values are one tensor, so that a cache stores them with one
        copy.
        """
        config = self.config
        fused = self.qkv(self.input_norm(x))
        fused = fused.view(x.shape[0], config.heads + 2 * config.kv_heads, config.head_dim)
        turning = fused[:, : config.heads + config.kv_heads]
        rotate(self.head_norm(turning), cos, sin, out=turning)
        keys_values = fused[:, config.heads :].view(-1, 2, config.kv_heads, config.head_dim)
        return fused[:, : config.heads], keys_values

    def output(self, x: Tensor, attended: Tensor) -> Tensor:
        """Return the layer's output [M, hidden], given its input x and attended [M, heads * D]."""
        x = self.attention_output(attended).add_(x)
        return self.mlp(self.output_norm(x)).add_(x)
