"""Keeps a drawn frame for what comes after it: the talker's next position, the codec, the host."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from realtime_tts.kernels.dispatch import Kernel

ENDED, FAILED = 1 << 24, 1 << 25
"""Flags in the first number of a row's output."""


class DrawnCodes(NamedTuple):
    """The codes of a frame of B rows."""

    first: Tensor
    """[B] int64; end of speech if there is no frame."""
    others: Tensor
    """[B, passes] int64."""
    failed: Tensor
    """[B] bool: NaN or Inf in the row's logits, its codes mean nothing."""


class CodeTables(NamedTuple):
    """Embeddings of codes, float."""

    first: Tensor
    """[V, H]."""
    others: Tensor
    """[passes * C, H]: a table of C codes for each pass."""
    eos: int
    """The first code that is end of speech."""

    def summed(self, first: Tensor, others: Tensor) -> Tensor:
        """Return the sum of the embeddings of codes [B] and [B, passes]: [B, H]."""
        passes = others.shape[1]
        begins = torch.arange(passes, device=others.device) * (len(self.others) // passes)
        rest = F.embedding_bag(others + begins, self.others, mode="sum")
        return rest.add_(F.embedding(first, self.first))


class SlotFrames(NamedTuple):
    """What slots carry from frame to frame. The last slot is the one for padding."""

    embeddings: Tensor
    """[slots, H] float: the sum of the last frame's embeddings."""
    codes: Tensor
    """[slots, places, 1 + passes] int64: frame f is in place f % places."""
    positions: Tensor
    """[slots] int64: the talker's next position."""
    drawn: Tensor
    """[slots] int64: the number of frames drawn, with this one."""
    tokens: Tensor
    """[slots] int32: the token of its text that the slot speaks."""


@Kernel
def keep_frame(
    slots: Tensor, drawn: DrawnCodes, tables: CodeTables, state: SlotFrames, outputs: Tensor
) -> None:
    """Keep a frame of `slots` [B] int64 in `state`, and write outputs [B, 2 + passes] int32: codes,
    with flags in the first one, and the token.

    The slot for padding stays at position 0. A row that ended has no code for its first one in
    `codes`, but some code nevertheless: a codec run for it may be queued already.
    """
    first, others, failed = drawn
    last = len(tables.others) // others.shape[1] - 1
    state.embeddings.index_copy_(0, slots, tables.summed(first, others))
    codes = torch.cat((first.unsqueeze(1), others), 1)
    places = (state.drawn.index_select(0, slots) - 1).remainder(state.codes.shape[1])
    state.codes.index_put_((slots, places), codes.clamp(max=last))
    positions = state.positions.index_select(0, slots) + 1
    positions = positions.masked_fill(slots == len(state.positions) - 1, 0)
    state.positions.index_copy_(0, slots, positions)
    outputs[:, :-1] = codes
    outputs[:, 0] += (first == tables.eos) * ENDED + failed * FAILED
    outputs[:, -1] = state.tokens.index_select(0, slots)
