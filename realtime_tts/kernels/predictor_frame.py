"""A frame of the code predictor: all its passes, with the draw of a code after each.

With separate kernels a pass of one row is fifty launches, each of which takes longer than reading
its weights. The CUDA kernel (`cuda_predictor_frame.py`) is one launch for all fifteen passes. The
functions here are its reference implementation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels.decoder import DecoderModel, plain_layers
from realtime_tts.kernels.sampling import FrameDraws, sample


@dataclass(frozen=True)
class FrameModel(DecoderModel):
    """The code predictor's weights, of one type and contiguous."""

    heads: Sequence[Tensor]
    """Output weight of each pass: [vocab, h]."""
    inputs: Sequence[Tensor]
    """Input table of each pass except the first, by the code drawn before it: [vocab, h]."""


def plain_frame(
    x: Tensor, model: FrameModel, pages: Tensor, draws: FrameDraws
) -> tuple[Tensor, Tensor]:
    """Return codes [B, passes] int64, and the logits [passes, B, vocab] float they were drawn from.

    x [2 * B, h] float are the inputs of positions 0 and 1, the rows of position 0 first. Keys and
    values of the rows go into pages [layers, slots, 2, kv_heads, positions, D] float, of which row
    b has page b.
    """
    rows, chosen, logits = len(x) // 2, list[Tensor](), list[Tensor]()
    for index, head in enumerate(model.heads):
        first = index + 1 if index else 0
        if index:
            x = model.inputs[index - 1][chosen[-1]]
        last = plain_pass(x, model, pages, first, 1 if index else 2)[-rows:]
        logits.append(F.linear(last, head))
        uniform = draws.uniform[:, index]
        chosen.append(
            sample.plain(logits[-1], draws.temperature, draws.top_k, draws.greedy, uniform)
        )
    return torch.stack(chosen, 1), torch.stack(logits)


def plain_pass(x: Tensor, model: FrameModel, pages: Tensor, position: int, count: int) -> Tensor:
    """Run x [count * B, h] float at `count` positions from `position` on, through all layers and
    the norm: [count * B, h] float. pages as in `plain_frame`."""
    rows = len(x) // count
    slots = torch.arange(rows, device=x.device)
    places = torch.arange(position, position + count, device=x.device).repeat_interleave(rows)
    return plain_layers(x, model, pages, slots.int().unsqueeze(1), slots.repeat(count), places)
