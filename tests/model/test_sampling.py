"""Drawing codes: the order of the official steps, per-row settings, no influence of neighbours."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from realtime_tts.errors import RequestError
from realtime_tts.model import SpeechModel
from realtime_tts.model.sampling import Limits, SamplingState, draw
from realtime_tts.sampling import PredictorSampling, Sampling, checked

CPU = torch.device("cpu")


def draws(logits: list[float], temperature: float, top_k: int, top_p: float) -> list[int]:
    """The code drawn at 1,000 heights between 0 and 1."""
    heights = (torch.arange(1000).float().unsqueeze(1) + 0.5) / 1000
    setting = PredictorSampling(temperature=temperature, top_k=top_k, top_p=top_p)
    rows = Limits.of([setting] * 1000, len(logits), CPU)
    return draw(torch.tensor([logits] * 1000), rows, heights).tolist()


def shares(
    logits: list[float], temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0
) -> list[float]:
    codes = draws(logits, temperature, top_k, top_p)
    return [codes.count(code) / 1000 for code in range(len(logits))]


def softmax(logits: list[float]) -> list[float]:
    weights = [math.exp(value) for value in logits]
    return [weight / sum(weights) for weight in weights]


def test_codes_are_drawn_with_their_probabilities() -> None:
    logits = [0.3, -1.0, 1.2, 0.0]
    assert shares(logits) == pytest.approx(softmax(logits), abs=0.002)


def test_temperature_divides_the_logits() -> None:
    logits = [0.3, -1.0, 1.2, 0.0]
    halved = softmax([value / 0.5 for value in logits])
    assert shares(logits, temperature=0.5) == pytest.approx(halved, abs=0.002)


def test_top_k_keeps_the_best_and_their_ties() -> None:
    assert shares([1.0, 3.0, 2.0, 0.0], top_k=2) == pytest.approx(
        [0, *softmax([3.0, 2.0]), 0], abs=0.002
    )
    tied = shares([2.0, 3.0, 2.0, 0.0], top_k=2)
    assert tied[0] == pytest.approx(tied[2], abs=0.002)
    assert tied[3] == 0


def test_top_p_keeps_the_fewest_that_reach_it() -> None:
    """0.5, 0.3, 0.15, 0.05: 0.8 needs the first two, anything more the third."""
    logits = [math.log(share) for share in (0.15, 0.5, 0.05, 0.3)]
    assert shares(logits, top_p=0.79) == pytest.approx([0, 0.625, 0, 0.375], abs=0.002)
    kept = shares(logits, top_p=0.85)
    assert kept[2] == 0 and kept[0] > 0
    assert shares(logits, top_p=0.01) == [0, 1, 0, 0]


@pytest.mark.parametrize("temperature", [1e-3, 1e-9, 1e-38, 5e-324])
def test_the_colder_the_surer_is_the_best_code(temperature: float) -> None:
    assert set(draws([20.0, 22.0, -5.0, 21.0], temperature, 0, 1.0)) == {1}
    assert set(draws([20.0, 22.0, -5.0, 21.0], temperature, 3, 0.9)) == {1}


def test_temperature_zero_is_the_best_code_whatever_the_height() -> None:
    assert set(draws([0.1, 0.3, 0.2], 0.0, 1, 0.5)) == {1}


def test_a_masked_code_is_never_drawn() -> None:
    logits = [-math.inf, 0.0, -math.inf, 0.0, -math.inf]
    for top_k in (0, 1, 4):
        assert set(draws(logits, 1.0, top_k, 0.9)) <= {1, 3}


def test_rows_of_one_batch_keep_their_own_settings() -> None:
    """Every row of a mixed batch is drawn as it is drawn alone."""
    given = [(0.0, 5, 1.0), (1.0, 0, 1.0), (0.7, 3, 1.0), (1.4, 0, 0.6), (1.0, 50, 0.9)]
    settings = [PredictorSampling(temperature=t, top_k=k, top_p=p) for t, k, p in given]
    logits = torch.randn(len(settings), 40, generator=torch.Generator().manual_seed(0))
    for height in torch.linspace(0.01, 0.99, 25):
        heights = height.expand(len(settings), 1)
        together = draw(logits, Limits.of(settings, 40, CPU), heights)
        for row, setting in enumerate(settings):
            one = draw(logits[row : row + 1], Limits.of([setting], 40, CPU), heights[:1])
            assert together[row] == one[0]


def test_nan_and_inf_give_some_code_and_disturb_nobody() -> None:
    logits = torch.randn(4, 12, generator=torch.Generator().manual_seed(0))
    heights = torch.full((4, 1), 0.4)
    for temperature, top_k, top_p in [(0.0, 0, 1.0), (1.0, 5, 1.0), (1.0, 0, 0.7)]:
        setting = PredictorSampling(temperature=temperature, top_k=top_k, top_p=top_p)
        limits = Limits.of([setting] * 4, 12, CPU)
        healthy = draw(logits, limits, heights)
        ill = logits.clone()
        ill[1, 3], ill[2, :] = math.nan, math.inf
        found = draw(ill, limits, heights)
        assert found[[0, 3]].tolist() == healthy[[0, 3]].tolist()
        assert all(0 <= code < 12 for code in found.tolist())


@pytest.mark.parametrize(
    ("field", "sampling"),
    [
        ("temperature", Sampling(temperature=-0.1)),
        ("predictor.temperature", Sampling(predictor=PredictorSampling(temperature=math.nan))),
        ("top_k", Sampling(top_k=-1)),
        ("top_p", Sampling(top_p=0.0)),
        ("predictor.top_p", Sampling(predictor=PredictorSampling(top_p=1.5))),
        ("repetition_penalty", Sampling(repetition_penalty=0.0)),
    ],
)
def test_settings_that_cannot_work_are_refused_by_name(field: str, sampling: Sampling) -> None:
    with pytest.raises(RequestError, match=rf"\$\.{re.escape(field)}`"):
        checked(sampling)
    assert checked(Sampling()) == Sampling()


# The talker's own steps ------------------------------------------------------------------------


def first_codes(
    state: SamplingState, logits: Tensor, slots: list[int], times: int = 1
) -> list[int]:
    for _ in range(times):
        codes, _ = state.first_codes(logits, slots)
    return codes.tolist()


@pytest.fixture
def state(model: SpeechModel) -> SamplingState:
    return SamplingState(model.config, 4, CPU)


@pytest.fixture
def flat(model: SpeechModel) -> Tensor:
    return torch.zeros(1, model.config.talker.vocab)


GREEDY = Sampling(temperature=0, repetition_penalty=1.5)


def test_a_code_already_made_is_penalised_once_and_for_ever(
    state: SamplingState, flat: Tensor
) -> None:
    """Logits > 0 are divided, < 0 multiplied; a second occurrence changes nothing."""
    flat[0, 5], flat[0, 6] = 1.4, 1.0
    state.begin(0, GREEDY, 0)
    assert first_codes(state, flat, [0]) == [5]
    assert first_codes(state, flat, [0]) == [6]  # 1.4 / 1.5 < 1.0
    assert first_codes(state, flat, [0], times=5) == [5]  # both penalised, both once
    flat[:] = -3.0
    flat[0, 5], flat[0, 8] = -2.5, -2.9
    assert first_codes(state, flat, [0]) == [8]  # -2.5 * 1.5 < -2.9


def test_the_penalty_is_a_rows_own(state: SamplingState, flat: Tensor) -> None:
    flat[0, 5], flat[0, 6] = 1.4, 1.0
    both = flat.expand(2, -1)
    state.begin(0, GREEDY, 0)
    state.begin(1, Sampling(temperature=0, repetition_penalty=1.0), 0)
    first_codes(state, both, [0, 1])
    assert first_codes(state, both, [0, 1]) == [6, 5]
    state.clear(0)
    assert first_codes(state, both, [1, 0]) == [5, 5]


def test_end_of_speech_waits_for_two_frames(
    model: SpeechModel, state: SamplingState, flat: Tensor
) -> None:
    eos = model.config.talker.eos_id
    flat[0, eos], flat[0, 3] = 9.0, 1.0
    state.begin(0, Sampling(temperature=0, repetition_penalty=1.0), 0)
    assert [first_codes(state, flat, [0])[0] for _ in range(3)] == [3, 3, eos]
    at_once = replace(model.config, generation=replace(model.config.generation, min_frames=0))
    state = SamplingState(at_once, 1, CPU)
    state.begin(0, Sampling(temperature=0, repetition_penalty=1.0), 0)
    assert first_codes(state, flat, [0]) == [eos]


def test_control_ids_are_never_drawn(
    model: SpeechModel, state: SamplingState, flat: Tensor
) -> None:
    """Of the ids behind the codebook only end of speech can be drawn."""
    codes, eos = model.config.predictor.vocab, model.config.talker.eos_id
    flat[0, codes:] = 50.0
    for seed in range(20):
        state.begin(0, Sampling(top_k=0), seed)
        assert first_codes(state, flat, [0])[0] < codes
        assert first_codes(state, flat, [0])[0] < codes
        assert first_codes(state, flat, [0]) == [eos]


def test_a_draw_depends_on_seed_and_frame_only(state: SamplingState, flat: Tensor) -> None:
    sampling = Sampling(top_k=0, repetition_penalty=1.0)
    state.begin(0, sampling, 3)
    alone = [first_codes(state, flat, [0])[0] for _ in range(6)]
    for slot, seed in enumerate((8, 3, 8)):
        state.begin(slot, sampling, seed)
    both = [first_codes(state, flat.expand(3, -1), [2, 1, 0]) for _ in range(6)]
    assert [row[1] for row in both] == alone
    assert [row[0] for row in both] == [row[2] for row in both] != alone


def test_rows_with_nan_are_named(model: SpeechModel, state: SamplingState, flat: Tensor) -> None:
    logits = flat.repeat(3, 1)
    logits[1, 7] = math.nan
    for slot in range(3):
        state.begin(slot, Sampling(), slot)
    codes, failed = state.first_codes(logits, [0, 1, 2])
    assert failed.tolist() == [False, True, False]
    assert codes.max() < model.config.talker.vocab
