"""First codes are drawn as `sample` draws, from what is allowed, and are recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from realtime_tts.kernels import FrameDraws, first_codes, sample
from realtime_tts.kernels.first_codes import CodeRules, SlotDraws
from realtime_tts.kernels.sampling import MOST_CODES
from realtime_tts.kernels.uniform import seed_key, uniforms

Random = Callable[..., Tensor]
First = Callable[[Tensor, Tensor, SlotDraws, CodeRules], tuple[Tensor, Tensor, FrameDraws]]

BOTH = pytest.mark.parametrize("kernel", [first_codes, first_codes.plain])
VOCAB = 300
RULES = CodeRules(codes=256, eos=270, min_frames=2, codebooks=16)
# Talker's temperature and top_k, the predictor's, and the repetition penalty. 0: greedy; no limit.
SETTINGS = [(0.9, 50, 0.8, 40, 1.05), (0, 0, 1.1, 0, 1.5), (1.4, 0, 0, 0, 1.0), (0.7, 5, 0.6, 1, 3)]


def bits(value: float) -> int:
    return int(torch.tensor(float(value or 1)).view(torch.int32))


def slots_of(settings: Sequence[tuple[float, ...]], device: torch.device) -> SlotDraws:
    """Slots with these settings and seeds from 0 on, and one for padding."""
    rows = [
        [seed_key(seed), t == 0, k, u == 0, j, bits(t), bits(1), bits(u), bits(1), bits(p)]
        for seed, (t, k, u, j, p) in enumerate([*settings, settings[0]])
    ]
    return SlotDraws(
        torch.tensor(rows, dtype=torch.long, device=device),
        torch.zeros(len(rows), VOCAB, dtype=torch.bool, device=device),
        torch.zeros(len(rows), dtype=torch.long, device=device),
    )


@BOTH
def test_codes_are_drawn_from_what_is_allowed(kernel: First, random: Random) -> None:
    """By `sample`, with each slot's settings, whatever the order of rows; also with padding."""
    logits = random(6, VOCAB) * 3
    device = logits.device
    state = slots_of(SETTINGS, device)
    made: list[list[int]] = [[] for _ in SETTINGS]
    generator = torch.Generator().manual_seed(5)
    for frame in range(5):
        logits[:, RULES.eos] += 1
        order = torch.randperm(4, generator=generator).tolist()
        codes, failed, draws = kernel(
            logits, torch.tensor([*order, 4, 4], device=device), state, RULES
        )
        assert not failed.any()
        assert all(0 <= code < VOCAB for code in codes.tolist())
        for row, slot in enumerate(order):
            t, k, u, j, penalty = SETTINGS[slot]
            scores = logits[row].clone()
            for code in set(made[slot]):
                scores[code] *= 1 / penalty if scores[code] > 0 else penalty
            end = float(scores[RULES.eos]) if frame >= RULES.min_frames else -math.inf
            scores[RULES.codes :] = -math.inf
            scores[RULES.eos] = end
            key = torch.tensor([seed_key(slot)], device=device)
            numbers = uniforms(key, key * 0 + frame, torch.arange(16, device=device))
            wanted = sample.plain(
                scores[None],
                torch.tensor([float(t or 1)], device=device),
                torch.tensor([int(k)], device=device),
                torch.tensor([t == 0], device=device),
                numbers[:, 0],
            )
            assert codes[row] == wanted[0]
            made[slot].append(int(codes[row]))
            assert torch.equal(draws.uniform[row], numbers[0, 1:])
            assert draws.temperature[row] == torch.tensor(float(u or 1))
            assert (draws.top_k[row], draws.greedy[row]) == (j, u == 0)
    assert state.drawn[:4].tolist() == [5] * 4
    for slot, codes_made in enumerate(made):
        assert state.seen[slot].nonzero().flatten().tolist() == sorted(set(codes_made))


@BOTH
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:All-NaN slice")  # the interpreter's
def test_rows_with_nan_are_named_and_disturb_no_other(kernel: First, random: Random) -> None:
    settings, slots = [SETTINGS[0]] * 3, torch.arange(3)
    logits = random(3, VOCAB)
    slots = slots.to(logits.device)
    wanted, _, _ = kernel(logits, slots, slots_of(settings, logits.device), RULES)
    logits[0, 4], logits[1, 299] = math.nan, math.inf
    state = slots_of(settings, logits.device)
    codes, failed, _ = kernel(logits, slots, state, RULES)
    assert failed.tolist() == [True, True, False]
    assert codes[2] == wanted[2] and all(0 <= code < VOCAB for code in codes.tolist())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_logits_are_drawn_as_they_are(dtype: torch.dtype, random: Random) -> None:
    logits = random(4, VOCAB, dtype=dtype)
    slots = torch.arange(4, device=logits.device)
    found = first_codes(logits, slots, slots_of(SETTINGS, logits.device), RULES)
    wanted = first_codes.plain(logits.float(), slots, slots_of(SETTINGS, logits.device), RULES)
    assert found[0].tolist() == wanted[0].tolist()


def test_a_vocabulary_that_does_not_fit_is_named(random: Random) -> None:
    logits = random(1, MOST_CODES + 1)
    slots = torch.zeros(1, dtype=torch.long, device=logits.device)
    with pytest.raises(AssertionError, match="at most 4096"):
        first_codes(logits, slots, slots_of(SETTINGS, logits.device), RULES)
