"""Loading whole checkpoints, and the frame they make together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from realtime_tts.model import SpeechModel, Variant, load_model
from tests.model.conftest import speak


@pytest.mark.parametrize("variant", Variant)
def test_every_variant_is_loaded(variant: Variant, parity: Path) -> None:
    assert load_model(parity / f"tiny-{variant}").config.variant is variant


def test_progress_is_told(parity: Path) -> None:
    told: list[tuple[str, int, int]] = []
    load_model(parity / "tiny-custom_voice", progress=lambda *step: told.append(step))
    assert told[0][1] == 0 and told[-1][1] == told[-1][2]


def test_the_small_topology_has_no_projection_and_speaks(
    small_checkpoint: Path, make_row: Callable[..., Any]
) -> None:
    small = load_model(small_checkpoint)
    assert small.predictor.projection is None
    row = make_row(small, 0)
    speak(small, [row], 3)
    codes = torch.stack(row.codes)
    assert codes.shape == (3, 16) and 0 <= codes.min() and codes.max() < 256
    samples = small.codec.decode(codes[None], [0], small.codec.new_state(1))
    assert samples.shape == (1, 3 * 1920)


def test_the_next_input_is_the_sum_of_the_codes_embeddings(
    model: SpeechModel, make_row: Callable[..., Any]
) -> None:
    state, row = model.new_state(1), make_row(model, 0)
    state.begin(0, row.sampling, 3)
    frame = model.frame(torch.randn(1, 128), [0], state)
    first, *others = frame.codes[0]
    wanted = model.talker.codec_embedding[first].clone()
    for index, code in enumerate(others):
        wanted += model.predictor.embedding[index * 256 + code]
    torch.testing.assert_close(frame.embedding[0], wanted)


def test_bfloat16_runs_and_is_near(
    parity: Path, model: SpeechModel, make_row: Callable[..., Any]
) -> None:
    rough = load_model(parity / "tiny-custom_voice", dtype=torch.bfloat16)
    row = make_row(rough, 0)
    outputs = []
    for each in (rough, model):
        cache = each.talker.new_cache(1)
        hidden = each.talker.prefill(row.prompt.inputs.to(each.talker.dtype), 0, cache)
        hidden = each.talker.decode(hidden[None], [0], cache)
        outputs.append(each.talker.logits(hidden))
    error = (outputs[0] - outputs[1]).norm() / outputs[1].norm()
    assert outputs[0].dtype is torch.bfloat16
    assert error < 0.1
    state = rough.new_state(1)
    state.begin(0, row.sampling, 0)
    assert not rough.frame(hidden.bfloat16(), [0], state).failed.any()


def test_defaults_are_the_checkpoints_own(model: SpeechModel) -> None:
    assert model.default_sampling.top_k == 50
    assert model.default_sampling.temperature == pytest.approx(0.9)
    assert model.max_frames == 8191
