"""What the captured engine makes of frames that another engine has spoken.

They become a part of its prompt, in passes of many positions, where the other engine made a step
for each. On a CPU both round alike. On a GPU sums in another order may round otherwise: in float32
no code differs, in bfloat16 a draw may fall otherwise at some time. That difference is bounded here
where it arises: in what the talker says next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.interface import BlockSamples, StepOutput, UtteranceSpec
from realtime_tts.engine.made_codes import unpacked
from realtime_tts.engine.model_engine import ModelEngine
from realtime_tts.engine.sound import all_sound
from realtime_tts.engine.torch_engine import TorchEngine
from realtime_tts.engine.warm_up import ScriptedPages
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.engine.speaking import step_of
from tests.model.light import light_model
from tests.parity import PARITY
from tts_scheduler import CodecRun, Layout, Prefill, StepPlan

TEXT = [7 + number % 80 for number in range(30)]
FRAMES = 34
FOLDER = PARITY / "tiny-custom_voice"

pytestmark = pytest.mark.usefixtures("one_thread")


def engine(device: str, dtype: torch.dtype) -> CapturedEngine:
    model = light_model(FOLDER, device=device, dtype=dtype)
    generation = replace(model.config.generation, min_frames=10**6)
    model.config = replace(model.config, generation=generation)
    tokenizer = Qwen2Tokenizer.from_folder(FOLDER)
    return CapturedEngine(
        model, tokenizer, name="tiny", slots=2, max_frames=FRAMES + 2, kv_positions=1_024
    )


def said(
    engine: CapturedEngine, layout: Layout, spoken: NDArray[np.int16] | None, frames: int
) -> tuple[NDArray[np.int16], list[Tensor]]:
    """Codes [frames, 16] behind what was spoken, and what the talker said before each [H]."""
    spec = UtteranceSpec(seed=11, layout=layout.value, voice=engine.info.voices[0])
    engine.open("turn", spec, spoken)
    engine.append("turn", TEXT)
    engine.finish("turn")
    pages, first = ScriptedPages(2, engine.kv_cache), 0 if spoken is None else len(spoken)
    prefill = Prefill("turn", 0, engine.prompt_tokens(spec), len(TEXT), layout, first)
    codes, hidden = [], []
    for frame in range(first, first + frames):
        output = engine.step(pages.added_to(step_of(prefill, frame)))
        assert not output.failed, output.failed
        codes.append(unpacked(output.codes["turn"], engine.info.codes_per_frame)[0])
        hidden.append(engine.steps.frame_step.hidden[0].float().cpu().clone())
    engine.close("turn")
    return np.stack(codes), hidden


@pytest.mark.parametrize(
    ("device", "dtype", "most"),
    [
        ("cpu", torch.float32, 1e-5),
        ("cpu", torch.bfloat16, 1e-5),
        pytest.param("cuda", torch.float32, 1e-4, marks=pytest.mark.gpu),
        # Twice what 28 layers of the 1.7B dimensions differed by on an H200, 89 times: 0.015.
        pytest.param("cuda", torch.bfloat16, 0.03, marks=pytest.mark.gpu),
    ],
)
@pytest.mark.parametrize("layout", [Layout.STREAMING, Layout.FULL_TEXT])
def test_the_talker_says_the_same_behind_frames_of_another_engine(
    layout: Layout, device: str, dtype: torch.dtype, most: float
) -> None:
    made = engine(device, dtype)
    codes, undisturbed = said(made, layout, None, FRAMES)
    for spoken in (1, 9, 33):
        again, (said_next, *_) = said(made, layout, codes[:spoken], min(FRAMES - spoken, 12))
        wanted, before = undisturbed[spoken], undisturbed[spoken - 1]
        difference = float((said_next - wanted).norm() / wanted.norm())
        assert difference <= most < float((before - wanted).norm() / wanted.norm())
        if device == "cpu" or dtype == torch.float32:
            assert np.array_equal(again, codes[spoken : spoken + len(again)])


@pytest.mark.parametrize("captures", [False, True])
def test_no_frame_follows_as_many_as_a_turn_may_have(captures: bool) -> None:
    """As where a socket is lost behind the last sound, before its client heard of the end."""
    model, tokenizer = light_model(FOLDER), Qwen2Tokenizer.from_folder(FOLDER)
    make: Callable[..., ModelEngine] = TorchEngine
    if captures:
        make = partial(CapturedEngine, kv_positions=1_024)
    made = make(model, tokenizer, name="tiny", slots=2, max_frames=5)
    for id, frames in (("whole", 5), ("nearly", 4)):
        codes = np.ones((frames, made.info.codes_per_frame), np.int16)
        made.open(id, UtteranceSpec(layout="streaming"), codes)
        made.append(id, TEXT)
    length = made.prompt_tokens(UtteranceSpec())
    plan = StepPlan(
        (
            Prefill("whole", 0, length, 1, Layout.STREAMING, 5),
            Prefill("nearly", 1, length, 1, Layout.STREAMING, 4),
        ),
        codec=(CodecRun("whole", 0, 1), CodecRun("nearly", 1, 1)),
    )
    output = made.step(ScriptedPages(2, made.kv_cache).added_to(plan))
    assert output.frames.keys() == {"nearly"}
    assert output.ended == {"whole": "max_length", "nearly": "max_length"}
    assert {id: samples.shape for id, samples in _sound(output)} == {
        "nearly": (made.info.samples_per_frame,)
    }


def _sound(output: StepOutput) -> Iterator[tuple[str, BlockSamples]]:
    for block in all_sound(output):
        yield from zip(block.ids, block.samples, strict=True)
