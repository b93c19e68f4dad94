"""Draws on the device are the draws of model.sampling."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from realtime_tts.kernels import sample
from realtime_tts.kernels.sampling import MOST_CODES
from realtime_tts.model.sampling import Limits, draw
from realtime_tts.sampling import PredictorSampling

Random = Callable[..., Tensor]
Draw = Callable[..., Tensor]

BOTH = pytest.mark.parametrize("kernel", [sample, sample.plain])


def drawn(
    kernel: Draw, logits: Tensor, settings: list[tuple[float, int]], uniform: Tensor
) -> list[int]:
    """Codes of rows with (temperature, top_k) each."""
    temperatures, ks = zip(*settings, strict=True)
    place = logits.device
    codes = kernel(
        logits,
        torch.tensor([t or 1.0 for t in temperatures], device=place),
        torch.tensor(ks, dtype=torch.int32, device=place),
        torch.tensor([t == 0 for t in temperatures], device=place),
        uniform.to(place),
    )
    assert codes.dtype is torch.long
    return codes.tolist()


def borders(logits: Tensor, temperature: float, top_k: int) -> Tensor:
    """Float64 heights between the kept codes of one row [V], by the definition."""
    scaled = logits.double() / temperature
    if 0 < top_k < len(scaled):
        scaled = scaled.masked_fill(scaled < scaled.topk(top_k).values[-1], -math.inf)
    return scaled.softmax(-1).cumsum(-1)


@BOTH
@pytest.mark.parametrize("vocab", [40, 2048, 3072])
@pytest.mark.parametrize(("temperature", "top_k"), [(0.9, 50), (1.3, 0), (0.4, 7), (1.0, 1)])
def test_each_code_has_its_own_part_of_the_numbers(
    kernel: Draw, vocab: int, temperature: float, top_k: int, random: Random
) -> None:
    """In the middle of a code's part, where rounding cannot matter, that code is drawn."""
    logits = random(vocab) * 2
    top_k = min(top_k, vocab)
    heights = borders(logits, temperature, top_k)
    parts = heights.diff(prepend=heights.new_zeros(1))
    codes = parts.topk(min(6, int((parts > 1e-4).sum()))).indices
    middles = (heights[codes] - parts[codes] / 2).float()
    rows = logits.expand(len(codes), -1).contiguous()
    found = drawn(kernel, rows, [(temperature, top_k)] * len(codes), middles)
    assert found == codes.tolist()


@BOTH
def test_the_parts_have_the_right_size(kernel: Draw, random: Random) -> None:
    """At both sides of every border, one part in a million away from it."""
    logits = random(24)
    heights = borders(logits, 0.8, 9)
    edges = heights[heights.diff(prepend=heights.new_zeros(1)) > 1e-4][:-1]
    numbers = torch.cat((edges - 1e-6, edges + 1e-6)).float()
    wanted = [int((heights <= number).sum()) for number in numbers.double()]
    rows = logits.expand(len(numbers), -1).contiguous()
    assert drawn(kernel, rows, [(0.8, 9)] * len(numbers), numbers) == wanted


@BOTH
def test_every_row_has_its_own_settings_and_draws_what_the_model_draws(
    kernel: Draw, random: Random
) -> None:
    settings = [(0.0, 5), (1.0, 0), (0.7, 3), (1.4, 200), (1.0, 300), (0.9, 50), (0.0, 0)]
    generator = torch.Generator().manual_seed(3)
    for _ in range(5):
        logits = random(len(settings), 300) * 3
        uniform = torch.rand(len(settings), generator=generator) * 0.98 + 0.01
        rows = [PredictorSampling(temperature=t, top_k=k) for t, k in settings]
        limits = Limits.of(rows, 300, logits.device)
        wanted = draw(logits, limits, uniform.to(logits.device).unsqueeze(1)).tolist()
        assert drawn(kernel, logits, settings, uniform) == wanted


@BOTH
def test_ties_with_the_last_kept_code_stay(kernel: Draw, device: torch.device) -> None:
    """Also those of zero with minus zero, and with more ties than codes to keep."""
    row = torch.tensor([0.5, 0.0, 0.7, -0.0, 0.2, -5.0, 0.0], device=device)
    numbers = (torch.arange(14) + 0.5) / 14
    rows = row.expand(14, -1).contiguous()
    assert set(drawn(kernel, rows, [(1.0, 4)] * 14, numbers)) == {0, 1, 2, 3, 4, 6}
    same = torch.full_like(rows, -1.5)
    assert set(drawn(kernel, same, [(1.0, 2)] * 14, numbers)) == set(range(7))


@BOTH
def test_greedy_takes_the_first_of_the_best(kernel: Draw, device: torch.device) -> None:
    rows = torch.tensor([[0.0, 3.0, 3.0, -1.0], [-9.0, -8.0, -7.0, -7.0]], device=device)
    assert drawn(kernel, rows, [(0.0, 2), (0.0, 0)], torch.tensor([0.99, 0.99])) == [1, 2]


@BOTH
@pytest.mark.parametrize("top_k", [0, 1, 3, 5])
def test_a_masked_code_is_never_drawn(kernel: Draw, top_k: int, device: torch.device) -> None:
    never = -math.inf
    row = torch.tensor([never, 0.0, never, never, 0.5, never], device=device)
    numbers = torch.tensor([2.0**-24, 0.3, 0.5, 0.9, 1 - 2.0**-24])
    rows = row.expand(5, -1).contiguous()
    assert set(drawn(kernel, rows, [(1.0, top_k)] * 5, numbers)) <= {1, 4}


@BOTH
def test_numbers_next_to_0_and_1_draw_the_ends(kernel: Draw, random: Random) -> None:
    rows = random(2, 500).abs()
    numbers = torch.tensor([2.0**-24, 1 - 2.0**-24])
    assert drawn(kernel, rows, [(1.0, 0)] * 2, numbers) == [0, 499]


@BOTH
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:All-NaN slice")  # the interpreter's
def test_a_row_of_nonsense_gives_a_code_and_disturbs_no_other(kernel: Draw, random: Random) -> None:
    logits = random(5, 100)
    settings = [(0.9, 50), (0.9, 0), (0.0, 0), (0.9, 50), (1.0, 50)]
    uniform = torch.full((5,), 0.4)
    wanted = drawn(kernel, logits, settings, uniform)
    logits[0] = math.nan
    logits[1, 7] = math.inf
    logits[2] = math.nan
    logits[3, 3] = -math.nan
    found = drawn(kernel, logits, settings, uniform)
    assert found[4] == wanted[4]
    assert all(0 <= code < 100 for code in found)


def test_numbers_may_be_a_column_of_a_table(random: Random) -> None:
    logits, table = random(4, 60), torch.rand(4, 16, generator=torch.Generator().manual_seed(0))
    settings = [(0.9, 50)] * 4
    column = table.to(logits.device)[:, 3]
    assert drawn(sample, logits, settings, column) == drawn(
        sample.plain, logits, settings, column.contiguous()
    )


def test_a_vocabulary_that_does_not_fit_is_named(random: Random) -> None:
    with pytest.raises(AssertionError, match="at most 4096"):
        drawn(sample, random(1, MOST_CODES + 1), [(1.0, 0)], torch.tensor([0.5]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_logits_are_drawn_as_they_are(dtype: torch.dtype, random: Random) -> None:
    logits = random(6, 200, dtype=dtype)
    uniform, settings = torch.linspace(0.1, 0.9, 6), [(0.9, 50)] * 6
    assert drawn(sample, logits, settings, uniform) == drawn(
        sample.plain, logits.float(), settings, uniform
    )
