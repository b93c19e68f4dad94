"""The codec's kernels in plain PyTorch: what they compute, for devices without Triton and tests.

Every function here has a twin of the same name and signature in `codec_triton.py`. Sums are float32
in both, results have the input's precision.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels.codec_past import Past, Snake


def unfold(
    x: Tensor,
    past: Past | None,
    *,
    count: int = 1,
    dilation: int = 1,
    snake: Snake | None = None,
    add: Tensor | None = None,
) -> Tensor:
    """The left matrix [B * L, count * C] of a causal convolution of x [B, L, C].

    Row t holds steps t - (count - 1) * dilation, ..., t of the activated input, oldest first; what
    is before the first of them comes from `past`, which moves on by L. `past` is None where
    count is 1. `add` [C]: x += add, in place, after it was read: the bias of the product that will
    be added to x.
    """
    rows, steps, channels = x.shape
    active = x if snake is None else _snake(x.float(), snake).to(x.dtype)
    padded = _joined(active, past)
    taps = [padded[:, tap * dilation : tap * dilation + steps] for tap in range(count)]
    matrix = torch.cat(taps, 2).view(rows * steps, count * channels)
    if add is not None:
        x.add_(add)
    return matrix


def conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    past: Past | None,
    *,
    count: int = 1,
    dilation: int = 1,
    residual: Tensor | None = None,
    snake: Snake | None = None,
    raw: bool = True,
) -> tuple[Tensor | None, Tensor | None]:
    """A causal convolution of x [B, L, C] with weight [count * C, N] and bias [N].

    y = product + bias + residual, [B, L, N]. Gives y if `raw`, and snake(y) if there is a `snake`.
    The past must not be longer than L.
    """
    rows, steps, _ = x.shape
    matrix = unfold(x, past, count=count, dilation=dilation)
    y = (matrix.float() @ weight.float() + bias).view(rows, steps, -1)
    if residual is not None:
        y = y + residual
    active = None if snake is None else _snake(y, snake).to(x.dtype)
    return (y.to(x.dtype) if raw else None), active


def residual_unit(
    x: Tensor,
    active: Tensor,
    wide: tuple[Tensor, Tensor],
    middle: Snake,
    point: tuple[Tensor, Tensor],
    past: Past,
    *,
    dilation: int,
    after: Snake,
    raw: bool = True,
) -> tuple[Tensor | None, Tensor]:
    """y = x + point(middle(wide(active))): x and active [B, L, C], `active` already activated.

    `wide` is a weight [7 * C, C] and its bias, `point` [C, C] and its bias. Gives y if `raw`, and
    after(y). The past must not be longer than L.
    """
    count = wide[0].shape[0] // x.shape[2]
    _, hidden = conv(
        active, *wide, past, count=count, dilation=dilation, snake=middle, raw=False
    )
    assert hidden is not None
    y, activated = conv(hidden, *point, None, residual=x, snake=after, raw=raw)
    assert activated is not None
    return y, activated


def output_conv(active: Tensor, weight: Tensor, bias: Tensor, past: Past) -> Tensor:
    """Causal convolution to one channel, clamped: active [B, L, C], weight [count, C], bias [1] ->
    float32 samples [B, L] in [-1, 1]."""
    rows, steps, _ = active.shape
    matrix = unfold(active, past, count=weight.shape[0])
    return (matrix.float() @ weight.float().flatten() + bias).view(rows, steps).clamp_(-1, 1)


def pcm(samples: Tensor) -> Tensor:
    """Samples float32 in [-1, 1] -> int16, as `realtime_tts.audio.pcm` rounds them."""
    return (samples.clamp(-1, 1) * 32_767).round().to(torch.int16)


def window_attention(
    qkv: Tensor, ring: Tensor, frames: Tensor, slots: Tensor, cos: Tensor, sin: Tensor
) -> Tensor:
    """Attention of T new frames to a window of the past: qkv [B, T, 3 * heads * D] ->
    [B, T, heads * D].

    `ring` [slots + 1, 2, heads, R, D]: keys without rotation, and values, frame n at n modulo R;
    the new ones are put there. R >= window + T - 1, so that none that is needed is overwritten.
    `frames` [slots + 1]: those each slot has had. `cos`, `sin` [window, D / 2] float32 by age:
    rotary embeddings depend on distance only, so that the queries are turned by each key's age,
    and a stream has no longest length at which angles lose digits.
    """
    rows, new, _ = qkv.shape
    _, _, heads, size, dim = ring.shape
    query, keys_values = qkv.view(rows, new, 3, heads, dim).split((1, 2), 2)
    fresh = keys_values.permute(0, 2, 3, 1, 4)  # [B, 2, heads, T, D]
    had, device = frames[slots], qkv.device
    key, value = torch.cat((ring[slots], fresh), 3).float().unbind(1)  # [B, heads, R + T, D]
    # How many frames a key lies behind the last old frame; the new ones lie before it.
    old = (had.unsqueeze(1) - 1 - torch.arange(size, device=device)) % size
    behind = torch.cat((old, -1 - torch.arange(new, device=device).expand(rows, new)), 1)
    ages = behind.unsqueeze(1) + 1 + torch.arange(new, device=device).unsqueeze(1)  # [B, T, K]
    seen = (ages >= 0) & (ages < cos.shape[0]) & (behind < had.unsqueeze(1)).unsqueeze(1)
    within = ages.clamp(0, cos.shape[0] - 1)
    c, s = cos[within].unsqueeze(3), sin[within].unsqueeze(3)  # [B, T, K, 1, D / 2]
    low, high = query.float().chunk(2, -1)  # [B, T, 1, heads, D / 2]
    turned = torch.cat((low * c - high * s, high * c + low * s), -1)  # [B, T, K, heads, D]
    scores = torch.einsum("btkhd,bhkd->bthk", turned, key) / math.sqrt(dim)
    weights = scores.masked_fill(~seen.unsqueeze(2), -math.inf).softmax(-1)
    # A slot's ring may hold anything where nothing was written since its reset.
    value = value.masked_fill(~seen.any(1)[:, None, :, None], 0.0)
    attended = torch.einsum("bthk,bhkd->bthd", weights, value)
    places = (had.unsqueeze(1) + torch.arange(new, device=device)) % size
    ring[slots.unsqueeze(1), :, :, places] = fresh.permute(0, 3, 1, 2, 4)
    return attended.reshape(rows, new, heads * dim).to(qkv.dtype)


def add_norm(
    x: Tensor, y: Tensor | None, scale: Tensor | None, weight: Tensor, eps: float
) -> Tensor:
    """x += scale * y, in place, then RMSNorm: x and y [M, H], scale and weight [H] -> [M, H].

    Without y it is the norm alone.
    """
    if y is not None:
        assert scale is not None
        x.copy_(x.float() + scale.float() * y.float())
    wide = x.float()
    normed = wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt()
    return (normed * weight.float()).to(x.dtype)


def swiglu(gate_up: Tensor) -> Tensor:
    """silu(gate) * up: [M, 2 * I] -> [M, I]."""
    gate, up = gate_up.float().chunk(2, -1)
    return (F.silu(gate) * up).to(gate_up.dtype)


def depthwise_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    norm: tuple[Tensor, Tensor],
    eps: float,
    past: Past,
) -> Tensor:
    """Causal depthwise convolution, then LayerNorm: x [B, L, C], weight [count, C] -> [B, L, C]."""
    rows, steps, channels = x.shape
    matrix = unfold(x, past, count=weight.shape[0]).view(rows, steps, -1, channels)
    y = (matrix.float() * weight.float()).sum(2) + bias.float()
    return F.layer_norm(y, (channels,), norm[0].float(), norm[1].float(), eps).to(x.dtype)


def codebook_sum(codes: Tensor, table: Tensor) -> Tensor:
    """A frame's vector is the sum of its codes' entries: codes [B, T, books] int64, table
    [books, entries, dim] -> [B, T, dim].

    Codes outside the codebook count as its first or last entry: a row that has ended may carry
    an id of the talker's, and must not read elsewhere.
    """
    books, entries, dim = table.shape
    first = torch.arange(books, device=codes.device) * entries
    chosen = (codes.clamp(0, entries - 1) + first).flatten()
    found = table.view(-1, dim).index_select(0, chosen).view(*codes.shape, dim)
    return found.float().sum(2).to(table.dtype)


def advance(frames: Tensor, side: Tensor, slots: Tensor, count: int) -> None:
    """All layers are done: `count` frames more, and the taps just written are the present ones."""
    frames[slots] = frames[slots] + count
    side[slots] = 1 - side[slots]


def _snake(x: Tensor, snake: Snake) -> Tensor:
    return x + (x * snake.rate).sin().square() * snake.gain


def _joined(x: Tensor, past: Past | None) -> Tensor:
    """Carried steps, then x [B, L, C] -> [B, past + L, C]; the other side gets what is next."""
    if past is None:
        return x
    now = past.side[past.slots]
    padded = torch.cat((past.taps[past.slots, now], x), 1)
    past.taps[past.slots, 1 - now] = padded[:, x.shape[1] :]
    return padded
