"""Draws one code per row, with settings that are on the device."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from realtime_tts.kernels.dispatch import Kernel

MOST_CODES = 4096
"""The largest vocabulary of the Triton kernel: one program holds a row."""


class FrameDraws(NamedTuple):
    """How B rows draw, as `sample` takes it: one code, or those of several passes."""

    temperature: Tensor
    """[B] float32, above 0."""
    top_k: Tensor
    """[B] int32; 0: no limit."""
    greedy: Tensor
    """[B] bool: rows that take the best code."""
    uniform: Tensor
    """[B, passes] float32; rows may have any stride."""


@Kernel
def sample(
    logits: Tensor, temperature: Tensor, top_k: Tensor, greedy: Tensor, uniform: Tensor
) -> Tensor:
    """Draw one code per row, [B] int64, from logits [B, V] float, as `model.sampling.draw` does.

    temperature [B] float32 is above 0, and 1 for greedy rows; top_k [B] int32 is 0 where there is
    no limit; greedy [B] bool: the best code, whatever the other settings; uniform [B] float32 in
    (0, 1), with any stride. There is no top_p: rows that have one need `draw`.

    The draw inverts the cumulative distribution, in the order of the vocabulary, over the top_k
    best entries and all that tie with the last of them. A row with NaN or Inf gets some code within
    the vocabulary and affects no other row.
    """
    vocab = logits.shape[1]
    scaled = logits.float() / temperature.unsqueeze(1)
    # The number of entries kept is data, so all are sorted: a shape may not depend on it.
    ordered = scaled.sort(-1, descending=True).values
    last = (top_k.long() - 1).clamp(0, vocab - 1).unsqueeze(1)
    dropped = (scaled < ordered.gather(1, last)) & (top_k > 0).unsqueeze(1)
    heights = scaled.masked_fill(dropped, float("-inf")).softmax(-1).cumsum(-1)
    # The first entry above the height drawn; entries of weight 0 add nothing and are never drawn.
    below = heights <= uniform.unsqueeze(1) * heights[:, -1:]
    codes = below.sum(-1).clamp_(max=vocab - 1)
    return logits.argmax(-1).where(greedy, codes)
