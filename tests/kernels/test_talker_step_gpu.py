"""A position of the talker in one launch, on a GPU it is made for."""

from __future__ import annotations

import pytest
import torch

from realtime_tts.kernels import StepProgram, step_program
from realtime_tts.kernels.decoder import DecoderModel, plain_layers
from tests.kernels.predictor_frames import BF16, Random, captured, difference
from tests.kernels.talker_steps import RELEASED, SMALL, Slots, assert_step_right, make_talker

GPU = pytest.mark.parametrize(
    "device", [pytest.param("cuda", marks=pytest.mark.gpu)], indirect=True
)

WATCHED = (0, 2)


@pytest.fixture
def released(random: Random, device: torch.device) -> tuple[DecoderModel, StepProgram]:
    model = make_talker(random, RELEASED)
    program = step_program(model, WATCHED)
    if program is None:
        pytest.skip("the kernel is made for compute capability 9.0 with 128 multiprocessors")
    return model, program


@GPU
@pytest.mark.parametrize(
    "positions",
    [
        [0],
        [15],
        [16],
        [1000],
        [127, 128],
        [1, 300, 900],
        [0, 1023, 64, 65],
        [5, 0, 15, 16, 700],
        [3, 100, 31, 32, 7, 1000, 64, 129],
    ],
)
def test_a_step_of_the_released_size_is_that_of_the_reference(
    positions: list[int], released: tuple[DecoderModel, StepProgram], random: Random
) -> None:
    model, program = released
    slots = Slots(random, model)
    for _ in range(3):
        assert_step_right(random, model, slots, program, positions, WATCHED)


@GPU
@pytest.mark.parametrize("rows", [1, 2, 4, 5, 8])
def test_a_captured_step_sees_new_inputs_every_time(
    rows: int, released: tuple[DecoderModel, StepProgram], random: Random
) -> None:
    """A word of an earlier round, or one that came too early, shows another replay's values."""
    model, program = released
    slots = Slots(random, model)
    x = random(rows, RELEASED.hidden, dtype=BF16)
    owners = torch.arange(rows, device=x.device)
    places = torch.zeros(rows, dtype=torch.long, device=x.device)
    graph, out = captured(lambda: program(x, slots.pages, slots.tables, owners, places)[0])
    for number in range(100):
        x.copy_(random(*x.shape, dtype=BF16))
        places.copy_(torch.arange(rows) * 7 + number)
        pages = slots.pages.clone()
        wanted = plain_layers(x, model, pages, slots.tables, owners, places)
        graph.replay()
        assert difference(out, wanted) < 0.02
        assert difference(slots.pages, pages) < 0.02


@GPU
def test_steps_of_all_numbers_of_rows_take_turns(
    released: tuple[DecoderModel, StepProgram], random: Random
) -> None:
    """They meet in the same places, and count their rounds together."""
    model, program = released
    slots = Slots(random, model)
    for rows in (8, 1, 3, 2, 5, 4, 8, 1):
        assert_step_right(
            random, model, slots, program, [50 * row + rows for row in range(rows)], WATCHED
        )


@GPU
def test_other_sizes_have_no_program_and_the_log_says_why(
    device: torch.device, random: Random, caplog: pytest.LogCaptureFixture
) -> None:
    assert step_program(make_talker(random, SMALL)) is None
    assert "sizes of the released" in caplog.records[0].getMessage()
