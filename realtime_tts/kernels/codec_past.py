"""What the codec's kernels share: a layer's carried steps, and the parameters of SnakeBeta."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Past(NamedTuple):
    """The steps a causal layer remembers of every slot, and the rows of this call.

    There are two copies by slot: a call reads the one that `side` names and writes the other, and
    `advance` changes sides when all layers are done. So programs that read the past of a row and
    programs that write it never meet, and nothing has to be copied out of the way.
    """

    taps: Tensor
    """[slots + 1, 2, steps, channels], oldest first, any strides but the last two contiguous."""
    side: Tensor
    """[slots + 1] int64, 0 or 1."""
    slots: Tensor
    """[B] int64: the slot of each row; padding rows share the last one, the scratch slot."""


class Snake(NamedTuple):
    """SnakeBeta, x + gain · sin²(rate · x): both float32 [channels]."""

    rate: Tensor
    gain: Tensor
