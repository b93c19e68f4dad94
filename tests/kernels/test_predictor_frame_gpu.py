"""A whole frame of the code predictor in one launch, on a GPU it is made for."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from realtime_tts.kernels import (
    MOST_FRAME_ROWS,
    FrameDraws,
    FrameModel,
    FrameProgram,
    frame_program,
    sample,
)
from realtime_tts.kernels.cuda_builds import PROGRAMS
from realtime_tts.model.code_predictor import Choices, CodePredictor
from realtime_tts.model.config import PredictorConfig
from realtime_tts.model.fused import FusedPredictor, frame_model
from realtime_tts.model.random_weights import RandomWeights
from tests.kernels.predictor_frames import (
    BF16,
    RELEASED,
    SMALL,
    Random,
    assert_right,
    assert_same_alone,
    begin_rounds_at,
    captured,
    difference,
    drawn,
    forced,
    make_draws,
    make_frame,
    make_model,
)

GPU = pytest.mark.parametrize(
    "device", [pytest.param("cuda", marks=pytest.mark.gpu)], indirect=True
)

# The predictor ---------------------------------------------------------------------------------


def make_predictor(device: torch.device, dtype: torch.dtype) -> CodePredictor:
    config = PredictorConfig(RELEASED, vocab=2048)
    weights = RandomWeights(device=device, dtype=dtype, stored=BF16)
    return CodePredictor(config, RELEASED.hidden, 16, weights, device, dtype)


def choices(draws: FrameDraws | None) -> Choices:
    def choose(logits: Tensor, codebook: int) -> Tensor:
        assert draws is not None
        temperature, top_k, greedy, uniform = draws
        return sample(logits, temperature, top_k, greedy, uniform[:, codebook - 1])

    return Choices(choose, draws)


@GPU
@pytest.mark.parametrize("rows", [1, 2, 3, 8, 16, 32, 64])
def test_greedy_codes_of_one_launch_are_those_of_separate_kernels(
    rows: int, random: Random, device: torch.device
) -> None:
    predictor = make_predictor(device, BF16)
    fused = FusedPredictor(predictor, rows + 1, device)
    draws = make_draws(rows, 15, device)
    draws.greedy.fill_(True)
    draws.temperature.fill_(1.0)
    same = 0
    for _ in range(8):
        hidden, embedding = (random(rows, RELEASED.hidden, dtype=BF16) for _ in range(2))
        whole = choices(draws)
        found = fused.codes(hidden, embedding, whole)
        assert not whole.failed.any() and found.shape == (rows, 15)
        wanted = fused.codes(hidden, embedding, choices(draws)._choose)
        # A near tie may go either way, and then all that follows differs.
        same += int((found == wanted).all(1).sum())
        assert (found[:, 0] == wanted[:, 0]).float().mean() >= 0.5
    assert same >= 4 * rows


@GPU
def test_larger_batches_and_wide_draws_make_separate_launches(
    random: Random, device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictor = make_predictor(device, BF16)
    launched: list[int] = []
    launch = FrameProgram.__call__

    def noted(self: FrameProgram, x: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        launched.append(len(x) // 2)
        return launch(self, x, *rest)

    monkeypatch.setattr(FrameProgram, "__call__", noted)
    for rows, wide in (
        (1, False),
        (MOST_FRAME_ROWS, False),
        (MOST_FRAME_ROWS + 1, False),
        (1, True),
    ):
        fused = FusedPredictor(predictor, rows, device)
        hidden = random(rows, RELEASED.hidden, dtype=BF16)
        draws = make_draws(rows, 15, device)
        chosen = Choices(choices(draws)._choose, None if wide else draws)
        fused.codes(hidden, hidden, chosen)
        assert chosen.failed.shape == (rows,)
    assert launched == [1, MOST_FRAME_ROWS]


@GPU
def test_float32_and_other_sizes_have_no_program_and_the_log_says_why(
    device: torch.device, random: Random, caplog: pytest.LogCaptureFixture
) -> None:
    wide = frame_model(make_predictor(device, torch.float32))
    assert wide is not None and frame_program(wide) is None
    assert frame_program(make_model(random, SMALL, 512, passes=2)) is None
    first, second = (record.getMessage() for record in caplog.records)
    assert "torch.float32" in first and "sizes of the released" in second


# One launch ------------------------------------------------------------------------------------


@pytest.fixture
def released(random: Random, device: torch.device) -> tuple[FrameModel, FrameProgram]:
    model = make_model(random, RELEASED, 2048, passes=15)
    program = frame_program(model)
    if program is None:
        pytest.skip("the kernel is made for compute capability 9.0 with 128 multiprocessors")
    return model, program


@GPU
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 8, 9, 16, 17, 24, 32, 33, 48, 64])
def test_a_frame_of_the_released_size_is_that_of_the_plain_twin(
    rows: int, released: tuple[FrameModel, FrameProgram], random: Random
) -> None:
    model, program = released
    for _ in range(3):
        assert_right(model, make_frame(random, model, program, rows))


@GPU
@pytest.mark.parametrize(("rows", "alone"), [(8, 3), (16, 9), (32, 17), (40, 33), (64, 33)])
def test_a_row_is_the_same_alone_and_among_others(
    rows: int, alone: int, released: tuple[FrameModel, FrameProgram], random: Random
) -> None:
    """As far as the same build takes both."""
    model, program = released
    assert_same_alone(make_frame(random, model, program, rows), program, alone)


@GPU
@pytest.mark.parametrize(
    ("rows", "times"), [(1, 100), (2, 100), (8, 100), (16, 100), (32, 50), (64, 25)]
)
def test_a_captured_frame_sees_new_inputs_every_time(
    rows: int, times: int, released: tuple[FrameModel, FrameProgram], random: Random
) -> None:
    """A word of an earlier round, or one that came too early, shows another replay's values."""
    model, program = released
    first = make_frame(random, model, program, rows)
    given, pages, logits = first.x.clone(), first.pages.clone(), first.logits.clone()
    graph, codes = captured(lambda: program(given, pages, first.draws, logits)[0])
    for _ in range(times):
        given.copy_(random(*given.shape, dtype=BF16))
        graph.replay()
        now = first._replace(codes=codes, logits=logits, x=given.clone(), pages=pages)
        assert torch.equal(codes, drawn(now))
        for found, right in zip(logits, forced(model, now)[0], strict=True):
            assert difference(found, right) < 0.025


@GPU
def test_frames_of_all_numbers_of_rows_take_turns(
    released: tuple[FrameModel, FrameProgram], random: Random
) -> None:
    """They meet in the same places, and count their rounds together."""
    model, program = released
    for rows in (16, 1, 64, 3, 17, 2, 8, 33, 1, 16, 5):
        assert_right(model, make_frame(random, model, program, rows))


@GPU
@pytest.mark.parametrize(("rows", "kernel"), [(2, "predictor_frame"), (32, "predictor_batch")])
def test_rounds_may_wrap_around(
    rows: int, kernel: str, released: tuple[FrameModel, FrameProgram], random: Random
) -> None:
    model, program = released
    tables = program._tables[kernel]
    begin_rounds_at(tables, -100, PROGRAMS)
    for _ in range(4):
        assert_right(model, make_frame(random, model, program, rows))
    assert int(tables._rounds) > 0
