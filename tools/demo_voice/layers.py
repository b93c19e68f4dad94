"""Decoder layers as trained: RMSNorm, grouped-query attention with q/k norm, SwiGLU."""

from __future__ import annotations

from inspect import signature
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.varlen import varlen_attn

from tools.demo_voice.codec_model import SwiGLU, rotate
from tools.demo_voice.settings import StackSize

_CAUSAL: dict[str, Any] = (
    {"window_size": (-1, 0)}
    if "window_size" in signature(varlen_attn).parameters
    else {"is_causal": True}
)


class Sight(NamedTuple):
    """What the positions of a batch may attend to: those before them in the same utterance.

    Told by `bias` [B, 1, L, L] or, where there is the kernel for it, by `bounds`; by neither,
    attention is plain causal.
    """

    bias: Tensor | None = None
    bounds: Tensor | None = None


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _attend(q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
    """[B, L, heads, D] each -> [B, L, heads, D]."""
    if sight.bounds is not None:
        length, shape = q.shape[1], q.shape
        q, k, v = (part.flatten(0, 1).contiguous() for part in (q, k, v))
        bounds = sight.bounds
        y = varlen_attn(q, k, v, bounds, bounds, length, length, **_CAUSAL)
        assert isinstance(y, Tensor)
        return y.view(shape)
    q, k, v = (part.transpose(1, 2) for part in (q, k, v))
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=sight.bias, is_causal=sight.bias is None)
    return y.transpose(1, 2)


def knows_bounds(device: torch.device) -> bool:
    """Whether this device has the kernel for `Sight.bounds`, and it is right, forward and backward,
    also with utterances of no length."""
    if device.type != "cuda":
        return False
    *parts, weights = torch.randn(4, 1, 96, 2, 64, device=device, dtype=torch.bfloat16).unbind(0)
    ends = torch.tensor([0, 30, 96, 96, 96, 96], dtype=torch.int32, device=device)
    of = (torch.arange(96, device=device) >= 30).long()
    allowed = (of[:, None] == of).tril()[None, None]
    bias = torch.zeros_like(allowed, dtype=weights.dtype).masked_fill_(~allowed, -1e4)

    def attended(sight: Sight) -> list[Tensor]:
        """What comes out, and the gradients of what went in."""
        given = [part.clone().requires_grad_() for part in parts]
        y = _attend(*given, sight)
        return [y.detach(), *torch.autograd.grad((y * weights).float().sum(), given)]

    try:
        pairs = list(zip(attended(Sight(bounds=ends)), attended(Sight(bias=bias)), strict=True))
    except RuntimeError as error:
        print(f"attention over bounds does not work here, a mask is used: {error}")
        return False
    off = torch.stack([(fast - true).abs().max() / true.abs().max() for fast, true in pairs])
    right = bool((off < 0.05).all())
    if not right:
        print(f"attention over bounds is wrong here, a mask is used: off by {off.tolist()}")
    return right


class _Attention(nn.Module):
    def __init__(self, size: StackSize):
        super().__init__()
        self.size = size
        hidden, head = size.hidden_size, size.head_dim
        queries, keys = size.num_attention_heads * head, size.num_key_value_heads * head
        self.q_proj = nn.Linear(hidden, queries, bias=False)
        self.k_proj = nn.Linear(hidden, keys, bias=False)
        self.v_proj = nn.Linear(hidden, keys, bias=False)
        self.o_proj = nn.Linear(queries, hidden, bias=False)
        self.q_norm = nn.RMSNorm(head, size.rms_norm_eps)
        self.k_norm = nn.RMSNorm(head, size.rms_norm_eps)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, sight: Sight
    ) -> tuple[Tensor, Tensor, Tensor]:
        """x [B, L, hidden] -> same; also queries and keys [B, L, heads, D]."""
        rows, steps, _ = x.shape
        split = (rows, steps, -1, self.size.head_dim)
        q = rotate(self.q_norm(self.q_proj(x).view(split)), cos, sin)
        k = rotate(self.k_norm(self.k_proj(x).view(split)), cos, sin)
        v = self.v_proj(x).view(split)
        group = self.size.num_attention_heads // self.size.num_key_value_heads
        k, v = k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)
        q, k = q.to(v.dtype), k.to(v.dtype)
        return self.o_proj(_attend(q, k, v, sight).flatten(2)), q, k


class Layer(nn.Module):
    def __init__(self, size: StackSize, dropout: float = 0.0):
        super().__init__()
        self.input_layernorm = nn.RMSNorm(size.hidden_size, size.rms_norm_eps)
        self.self_attn = _Attention(size)
        self.post_attention_layernorm = nn.RMSNorm(size.hidden_size, size.rms_norm_eps)
        self.mlp = SwiGLU(size.hidden_size, size.intermediate_size)
        self.dropout = dropout

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, sight: Sight
    ) -> tuple[Tensor, Tensor, Tensor]:
        y, q, k = self.self_attn(self.input_layernorm(x), cos, sin, sight)
        x = x + F.dropout(y, self.dropout, self.training)
        y = self.mlp(self.post_attention_layernorm(x))
        return x + F.dropout(y, self.dropout, self.training), q, k
