"""Rows do not influence each other: on the CPU in float32 not by a single bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from realtime_tts import demo_voice
from realtime_tts.model import SpeechModel, linear, load_model
from tests.model.conftest import Loop, speak

FRAMES = 5


DEMO = Path(demo_voice.__file__).parent / "checkpoint"


@pytest.fixture(
    scope="module", params=["1.7B topology", "0.6B topology", "demo voice", "no half precision"]
)
def any_model(
    request: pytest.FixtureRequest, model: SpeechModel, small_checkpoint: Path
) -> SpeechModel:
    if request.param == "1.7B topology":
        return model
    if request.param == "no half precision":
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(linear, "half_serves", lambda weight: False)
            return load_model(DEMO)
    return load_model(DEMO if request.param == "demo voice" else small_checkpoint)


@pytest.fixture
def two_threads() -> Iterator[None]:
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


@pytest.fixture
def check_alone_and_together(
    make_row: Callable[..., Any],
    same_speech: Callable[..., None],
) -> Callable[..., None]:
    """Rows one after the other in slot 0, then all at once in other slots: the same bits."""

    def check(model: SpeechModel, rows: int, frames: int) -> None:
        alone = [make_row(model, number, slot=0) for number in range(rows)]
        for row in alone:
            speak(model, [row], frames)
        together = [make_row(model, number, slot=rows - 1 - number) for number in range(rows)]
        speak(model, together, frames)
        for one, other in zip(alone, together, strict=True):
            same_speech(one, other)

    return check


def test_a_row_is_the_same_alone_and_in_a_batch(
    any_model: SpeechModel, check_alone_and_together: Callable[..., None]
) -> None:
    check_alone_and_together(any_model, rows=9, frames=FRAMES)


def test_a_row_is_the_same_alone_and_in_a_batch_on_two_threads(
    two_threads: None, check_alone_and_together: Callable[..., None]
) -> None:
    model = load_model(DEMO)  # with as many threads as it runs with
    check_alone_and_together(model, rows=3, frames=2)
    check_predictor_logits(model)


def test_the_predictors_logits_do_not_depend_on_the_batch(any_model: SpeechModel) -> None:
    check_predictor_logits(any_model)


def check_predictor_logits(model: SpeechModel) -> None:
    """Codes alone would hide differences too small to change one."""
    predictor, talker = model.predictor, model.talker
    hidden = torch.randn(5, talker.config.transformer.hidden)
    first = torch.arange(5)
    given = torch.randint(0, predictor.config.vocab, (5, 16))

    def logits(rows: slice) -> Tensor:
        seen: list[Tensor] = []

        def forced(scores: Tensor, codebook: int) -> Tensor:
            seen.append(scores)
            return given[rows, codebook]

        embedding = talker.codec_embedding[first[rows]]
        predictor.codes(hidden[rows], embedding, forced)
        return torch.stack(seen, 1)

    together = logits(slice(0, 5))
    for row in range(5):
        assert torch.equal(logits(slice(row, row + 1)), together[row : row + 1])
    assert torch.equal(logits(slice(2, 5)), together[2:5])


def test_a_row_is_the_same_whoever_joins_leaves_and_waits(
    model: SpeechModel,
    make_row: Callable[..., Any],
    same_speech: Callable[..., None],
) -> None:
    """Every step has another set of rows; each row is held in some of them."""
    rows = [make_row(model, number) for number in range(5)]
    loop = Loop(model, 5)
    for step in range(16):
        loop.step([row for row in rows if (step + row.slot) % (2 + row.slot % 3)])
    for row in rows:
        alone = make_row(model, row.seed, slot=0)
        speak(model, [alone], len(row.codes))
        same_speech(row, alone)


def test_a_slot_remembers_nothing_of_its_last_utterance(
    model: SpeechModel,
    make_row: Callable[..., Any],
    same_speech: Callable[..., None],
) -> None:
    loop = Loop(model, 1)
    first, between, again = (make_row(model, number, slot=0) for number in (3, 1, 3))
    for row in (first, between, again):
        for _ in range(FRAMES):
            loop.step([row])
    same_speech(first, again)


def test_another_seed_speaks_otherwise_and_the_same_seed_alike(
    model: SpeechModel, make_row: Callable[..., Any]
) -> None:
    rows = [make_row(model, 0, slot=slot, seed=seed) for slot, seed in enumerate((5, 6, 5))]
    speak(model, rows, FRAMES)
    one, other, same = (torch.stack(row.codes) for row in rows)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), float("-inf")])
def test_a_row_with_nan_or_inf_fails_alone(
    poison: float,
    model: SpeechModel,
    make_row: Callable[..., Any],
    same_speech: Callable[..., None],
) -> None:
    rows = [make_row(model, number) for number in range(4)]
    loop = Loop(model, 4)
    for step in range(FRAMES):
        if step == 3:
            rows[1].embedding = torch.full_like(rows[1].embedding, poison)
        loop.step(rows)
        assert [row.failed for row in rows] == [False, step >= 3, False, False]
        assert all(0 <= int(code) for code in rows[1].codes[-1])
    for number in (0, 2, 3):
        alone = make_row(model, number, slot=0)
        speak(model, [alone], FRAMES)
        same_speech(rows[number], alone)


def test_a_failure_inside_the_predictor_is_noticed(
    model: SpeechModel, make_row: Callable[..., Any]
) -> None:
    """Finite first-code logits do not hide what goes wrong later in the frame."""
    state = model.new_state(2)
    for slot in range(2):
        state.begin(slot, make_row(model, 0).sampling, 0)
    hidden = torch.zeros(2, model.config.talker.transformer.hidden)
    table = model.talker.codec_embedding
    model.talker.codec_embedding = table.clone()
    try:
        first = model.frame(hidden, [0, 1], state).codes[:, 0]
        state.begin(0, make_row(model, 0).sampling, 0)
        state.begin(1, make_row(model, 0).sampling, 1)
        second = model.frame(hidden, [0, 1], state).codes[1, 0]
        assert first[0] != second
        model.talker.codec_embedding[second] = float("nan")
        state.begin(0, make_row(model, 0).sampling, 0)
        state.begin(1, make_row(model, 0).sampling, 1)
        assert model.frame(hidden, [0, 1], state).failed.tolist() == [False, True]
    finally:
        model.talker.codec_embedding = table
