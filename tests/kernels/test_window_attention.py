"""The codec's attention over a ring: against its reference implementation, and written out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from realtime_tts.kernels.window_attention import window_attention
from realtime_tts.model.layers import rotate

Random = Callable[..., Tensor]
Check = Callable[[Tensor, Tensor], None]
DTYPES = [torch.float32, torch.bfloat16]
SLOTS = [4, 0, 3]  # of five and the scratch slot
ROWS = len(SLOTS)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("frames", "dim", "window"), [(1, 16, 8), (2, 8, 8), (8, 16, 5), (2, 48, 16), (5, 64, 72)]
)
def test_attention_over_the_ring_equals_its_twin(
    frames: int, dim: int, window: int, dtype: torch.dtype, random: Random, close: Check
) -> None:
    heads, size = 3, window + 7
    qkv = random(ROWS, frames, 3 * heads * dim, dtype=dtype)
    rings = random(6, 2, 2, heads, size, dim, dtype=dtype)
    rings[3] = torch.nan  # just reset: whatever it held is not read
    ring, device = rings[:, 1], qkv.device
    had = torch.tensor([3, 9, 9, 0, 2 * size + 5, 0], device=device)
    slots = torch.tensor(SLOTS, device=device)
    cos, sin = random(window, dim // 2), random(window, dim // 2)
    other = ring.clone()
    found = window_attention(qkv, ring, had, slots, cos, sin)
    close(found, window_attention.plain(qkv, other, had, slots, cos, sin))
    assert torch.equal(ring.nan_to_num(7.0), other.nan_to_num(7.0))
    assert not found.isnan().any()


def test_turning_queries_by_age_is_turning_both_by_position(
    random: Random, device: torch.device
) -> None:
    """Written out: every frame attends to at most `window` rotated keys, itself the last."""
    window, size, dim, total = 5, 12, 8, 21
    qkv = random(1, total, 3 * dim)
    steps = torch.arange(total, device=device, dtype=torch.float64).unsqueeze(1)
    angles = steps * torch.tensor([1.0, 0.3, 0.1, 0.03], device=device)
    cos, sin = angles.cos().float(), angles.sin().float()
    ring = torch.zeros(2, 2, 1, size, dim, device=device)
    had, slots = torch.zeros(2, dtype=torch.long, device=device), torch.tensor([0], device=device)
    found = []
    for first, last in pairwise((0, 1, 3, 7, 15, 20, 21)):
        piece = qkv[:, first:last].contiguous()
        found.append(window_attention(piece, ring, had, slots, cos[:window], sin[:window]))
        had += last - first
    query, key, value = qkv[0].chunk(3, -1)
    both, signed = torch.cat((cos, cos), 1), torch.cat((-sin, sin), 1)
    rotate(query, both, signed, out=query)
    rotate(key, both, signed, out=key)
    scores = query @ key.t() / dim**0.5
    ages = steps - steps.t()
    scores = scores.masked_fill((ages < 0) | (ages >= window), -torch.inf)
    torch.testing.assert_close(torch.cat(found, 1)[0], scores.softmax(1) @ value, atol=1e-5, rtol=0)
