"""The left matrix of the codec's causal convolutions: activated input, joined with the past."""

from __future__ import annotations

import torch
from torch import Tensor

from realtime_tts.kernels.codec_past import Past, Snake
from realtime_tts.kernels.dispatch import Kernel


@Kernel
def unfold(
    x: Tensor,
    past: Past | None,
    *,
    count: int = 1,
    dilation: int = 1,
    snake: Snake | None = None,
    add: Tensor | None = None,
) -> Tensor:
    """Return the left matrix [B * L, count * C] float of a causal convolution of x [B, L, C] float.

    Row t holds steps t - (count - 1) * dilation, ..., t of the activated input, oldest first; steps
    before the first come from `past`, which advances by L. `past` is None where count is 1. `add`
    [C] float: x += add, in place, after it was read: the bias of the product that will be added to
    x.
    """
    rows, steps, channels = x.shape
    active = x if snake is None else snake_beta(x.float(), snake).to(x.dtype)
    padded = joined(active, past)
    taps = [padded[:, tap * dilation : tap * dilation + steps] for tap in range(count)]
    matrix = torch.cat(taps, 2).view(rows * steps, count * channels)
    if add is not None:
        x.add_(add)
    return matrix


def snake_beta(x: Tensor, snake: Snake) -> Tensor:
    """Return x + gain · sin²(rate · x) per channel: [..., C] float32 (BigVGAN, Lee et al. 2023)."""
    return x + (x * snake.rate).sin().square() * snake.gain


def joined(x: Tensor, past: Past | None) -> Tensor:
    """Return carried steps, then x: [B, L, C] -> [B, past + L, C] float. The steps for the next
    call are written to the other side."""
    if past is None:
        return x
    now = past.side[past.slots]
    padded = torch.cat((past.taps[past.slots, now], x), 1)
    past.taps[past.slots, 1 - now] = padded[:, x.shape[1] :]
    return padded
