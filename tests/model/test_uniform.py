"""The hash behind every draw: the same numbers everywhere, evenly spread."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.kernels.uniform import seed_key, uniforms

MASK = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15
GOLDEN = [0.6093944907188416, 0.4091795086860657, 0.1679820418357849, 0.07488816976547241]


def reference_mix(word: int) -> int:
    """splitmix64's finaliser in plain integers."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def reference(seed: int, frame: int, codebook: int) -> float:
    word = reference_mix((seed + GAMMA) & MASK)
    word = reference_mix((word + (frame + 1) * GAMMA) & MASK)
    word = reference_mix((word + (codebook + 1) * GAMMA) & MASK)
    return ((word >> 41) + 0.5) / 2**23


def drawn(seed: int, frame: int, codebook: int) -> float:
    return float(
        uniforms(torch.tensor([seed_key(seed)]), torch.tensor([frame]), torch.tensor([codebook]))
    )


@given(st.integers(), st.integers(0, 10**6), st.integers(0, 15))
def test_tensors_and_plain_integers_agree(seed: int, frame: int, codebook: int) -> None:
    assert drawn(seed, frame, codebook) == reference(seed, frame, codebook)


def test_the_numbers_never_change() -> None:
    """A seed must give the same speech in every version."""
    found = [drawn(7, 0, 0), drawn(7, 0, 1), drawn(7, 1, 0), drawn(-1, 3, 15)]
    assert found == GOLDEN


def test_numbers_are_strictly_between_zero_and_one_and_evenly_spread() -> None:
    keys = torch.tensor([seed_key(seed) for seed in range(200)])
    found = torch.cat(
        [uniforms(keys, torch.full_like(keys, frame), torch.arange(16)) for frame in range(20)]
    ).flatten()
    assert 0 < found.min() and found.max() < 1
    counts = torch.histc(found, 64, 0, 1)
    expected = len(found) / 64
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert chi_square < 120  # 63 degrees of freedom: one in 10^5
    assert abs(float(torch.corrcoef(torch.stack((found[:-1], found[1:])))[0, 1])) < 0.01


def test_similar_seeds_frames_and_codebooks_are_unrelated() -> None:
    keys = torch.tensor([seed_key(seed) for seed in range(4096)])
    zero = torch.zeros_like(keys)
    one = uniforms(keys, zero, torch.arange(2))
    later = uniforms(keys, zero + 1, torch.arange(2))
    columns = torch.stack((one[:, 0], one[:, 1], later[:, 0], one[:, 0].roll(1)))
    off_diagonal = torch.corrcoef(columns) - torch.eye(4)
    assert float(off_diagonal.abs().max()) < 0.06
