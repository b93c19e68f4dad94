"""Where the positions of several prompts go, which are computed one behind the other.

Prompts have very different lengths. Packed like this, only the last positions of a batch are
padding, and no row of the batch is as long as the longest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class PromptRows:
    """N positions of B prompts. Row b has the positions from begins[b] to begins[b + 1].

    What lies behind begins[B] is padding: its owner is the scratch slot, its place 0.
    """

    slots: Tensor
    """[B]"""
    starts: Tensor
    """[B]: the place in its slot of each row's first position."""
    begins: Tensor
    """[B + 1], ascending."""
    owners: Tensor
    """[N]: the slot of each position."""
    places: Tensor
    """[N]: its place in that slot."""
    most: int
    """No row has more positions."""

    @property
    def last(self) -> Tensor:
        """[B]: the number of each row's last position, if it has any."""
        return (self.begins[1:] - 1).clamp(min=0)

    @classmethod
    def of(
        cls,
        slots: Sequence[int],
        starts: Sequence[int],
        lengths: Sequence[int],
        device: torch.device,
    ) -> PromptRows:
        """Of numbers on the host, without padding."""

        def tensor(numbers: Sequence[int]) -> Tensor:
            return torch.tensor(numbers, dtype=torch.long, device=device)

        rows = list(zip(slots, starts, lengths, strict=True))
        owners = [slot for slot, _, length in rows for _ in range(length)]
        places = [start + step for _, start, length in rows for step in range(length)]
        begins = tensor([0, *accumulate(lengths)])
        return cls(
            tensor(slots), tensor(starts), begins, tensor(owners), tensor(places), max(lengths)
        )
