"""Programs that are captured ask the host nothing: a graph would repeat the answer for ever."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.kernels import attention
from realtime_tts.model import load_model
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.parity import PARITY

ASKING = {
    "aten._local_scalar_dense.default",  # tolist()
    "aten.item.default",  # item(), bool(), int(): in inference mode seen as they are
    "aten.is_nonzero.default",
    "aten.nonzero.default",
    "aten.masked_select.default",
    "aten.repeat_interleave.Tensor",
    "aten.repeat_interleave.self_Tensor",
    "aten._unique2.default",
    "aten.lift_fresh.default",  # torch.tensor(...): made on the host
    "aten.lift_fresh_copy.default",
}


class Asked(TorchDispatchMode):
    """Notes operations that read from the host or write to it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.count = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.count += 1
        indices = args[1] if str(function).startswith("aten.index") and len(args) > 1 else ()
        masks = isinstance(indices, list | tuple) and any(
            isinstance(index, torch.Tensor) and index.dtype is torch.bool for index in indices
        )
        if str(function) in ASKING or masks:
            self.found.add(str(function))
        return function(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def tables_as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention in plain torch asks on a CPU how far it has to look."""
    monkeypatch.setattr(attention, "held_pages", lambda tables, *rest: tables)


@pytest.fixture(scope="module")
def engine() -> CapturedEngine:
    folder = PARITY / "tiny-custom_voice"
    tokenizer = Qwen2Tokenizer.from_folder(folder)
    return CapturedEngine(
        load_model(folder), tokenizer, name="tiny", slots=4, kv_positions=128, max_frames=40
    )


def asked(program: Any) -> set[str]:
    with torch.inference_mode(), Asked() as mode:
        program()
    assert mode.count > 20, "nothing was watched"
    return mode.found


@pytest.mark.parametrize("wide", [False, True])
def test_a_frame_asks_nothing(engine: CapturedEngine, wide: bool) -> None:
    step = engine.steps.frame_step
    step.idle(4)
    assert not asked(lambda: step(4, wide))


def test_the_talker_asks_nothing(engine: CapturedEngine) -> None:
    step = engine.steps.frame_step
    step.idle(4)
    assert not asked(lambda: step.talk(4))


def test_a_prompt_asks_nothing(engine: CapturedEngine) -> None:
    step = engine.steps.prompt_step
    step.idle(16)
    assert not asked(lambda: step(16))


@pytest.mark.parametrize("frames", [1, 2, 4, 8])
def test_a_codec_run_asks_nothing(engine: CapturedEngine, frames: int) -> None:
    step = engine.steps.codec_step
    step.idle(2)
    assert not asked(lambda: step(2, frames))


def test_questions_are_noticed() -> None:
    x = torch.ones(30)
    assert asked(lambda: [part + 1 for part in x[x > 0]]) == {"aten.index.Tensor"}
    assert asked(lambda: [part.item() for part in x]) == {"aten.item.default"}
    assert asked(lambda: [torch.tensor([1.0]) + part for part in x]) == {"aten.lift_fresh.default"}
