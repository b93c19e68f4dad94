"""What the codec's kernels share: a layer's carried steps, and the parameters of SnakeBeta."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Past(NamedTuple):
    """The steps that a causal layer remembers of every slot, and the rows of this call.

    There are two copies by slot: a call reads the one that `side` names and writes the other, and
    `advance` switches sides when all layers are done. So no program writes a past that another one
    still reads, and no past has to be copied.
    """

    taps: Tensor
    """[slots + 1, 2, steps, channels] float, oldest first; contiguous in steps and channels."""
    side: Tensor
    """Which copy is the present one: [slots + 1] int64, 0 or 1."""
    slots: Tensor
    """The slot of each row: [B] int64. Padding rows share the last one, the scratch slot."""


class Snake(NamedTuple):
    """Parameters of SnakeBeta, x + gain · sin²(rate · x): both [channels] float32."""

    rate: Tensor
    gain: Tensor
