"""The position that heads look at most is the one that the definition says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from realtime_tts.kernels import most_seen
from realtime_tts.kernels.alignment import MOST_TEXT

Random = Callable[..., Tensor]

HEADS = [(0, 1), (1, 0), (1, 1)]
"""Layer and key head of each query head."""
VIEWS = [(9, 40), (12, 1), (30, MOST_TEXT), (0, 0), (5, 100)]
"""First position and count of each row; the last but one has no text, and the scratch slot."""


@pytest.mark.parametrize("kernel", [most_seen, most_seen.plain])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_position_is_that_of_the_largest_sum(
    kernel: Callable[..., Tensor], dtype: torch.dtype, random: Random, device: torch.device
) -> None:
    width, dim = 20, 64
    pages = random(2, 1 + 4 * width, 2, 2, 16, dim, dtype=dtype)
    order = torch.randperm(4 * width, generator=torch.Generator().manual_seed(2)) + 1
    tables = torch.cat((order.view(4, width), torch.zeros(1, width, dtype=torch.long))).int()
    slots, firsts, counts = [2, 0, 3, 4, 1], *zip(*VIEWS, strict=True)
    query = 2 * random(len(slots), len(HEADS), dim, dtype=dtype)
    wanted = []
    for row, (slot, (first, count)) in enumerate(zip(slots, VIEWS, strict=True)):
        keys = pages[:, tables[slot].long(), 0].transpose(1, 2).flatten(2, 3).double()
        weights = torch.zeros(max(1, count), dtype=torch.double, device=pages.device)
        for number, (layer, head) in enumerate(HEADS):
            near = keys[layer, head, first : first + count]
            weights[:count] += (near @ query[row, number].double() / dim**0.5).softmax(0)
        wanted.append(int(weights.argmax()))
        best = weights.topk(min(2, len(weights))).values
        assert len(best) < 2 or float(best[0] / best[1]) > 1.01, "rounding must not matter"
        pages[:, tables[slot, (first + count) // 16 + 1 :].long()] = float("nan")
    pages[:, 0] = float("nan")  # what padding wrote
    given = [torch.tensor(numbers, device=device) for numbers in (slots, firsts, counts)]
    heads = torch.tensor(HEADS, dtype=torch.int32, device=device)
    found = kernel(query, pages, heads, tables.to(device), *given)
    assert found.dtype is torch.int32
    assert found.tolist() == wanted
