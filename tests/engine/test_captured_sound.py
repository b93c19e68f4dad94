"""What goes to the codec together, and what comes back for whom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.captured_sound import StepSound
from realtime_tts.engine.graphs import Buckets
from realtime_tts.engine.interface import RowError, StepOutput, UtteranceSpec
from realtime_tts.engine.model_engine import Row
from realtime_tts.model import PromptSpec, load_model
from realtime_tts.model.frame_step import RING
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.parity import PARITY

SLOTS, SIZE = 8, 1920


@pytest.fixture(scope="module")
def engine() -> CapturedEngine:
    folder = PARITY / "tiny-custom_voice"
    tokenizer = Qwen2Tokenizer.from_folder(folder)
    return CapturedEngine(
        load_model(folder), tokenizer, name="tiny", slots=SLOTS, kv_positions=128, max_frames=40
    )


@pytest.fixture
def calls(engine: CapturedEngine, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Rows and frames of the codec's calls; samples are 100 times the slot plus the place in the
    ring, and at most two rows of eight frames share a call."""
    made: list[tuple[int, int]] = []
    places = torch.arange(SLOTS + 1)[:, None] * 100 + torch.arange(RING)
    engine.steps.frame_step.codes.copy_(places[..., None])

    def decode(codes: Tensor, slots: Tensor, state: Any) -> Tensor:
        made.append((len(codes), codes.shape[1]))
        assert (codes[:, 0, 0] // 100 == slots).all()
        return (codes[..., 0] / 32_767).repeat_interleave(SIZE, 1)

    monkeypatch.setattr(engine.model.codec, "decode", decode)
    monkeypatch.setitem(engine.steps._codec_rows, 8, Buckets((1, 2)))
    return made


def rows(**frames: int) -> dict[str, Row]:
    """Rows with so many frames; slots in the order of the alphabet."""
    return {
        id: Row(UtteranceSpec(), PromptSpec(), slot=ord(id) - ord("a"), frames=count)
        for id, count in frames.items()
    }


def numbers(block: Any) -> list[list[int]]:
    """A block as its frames' numbers."""
    frames = block.samples.reshape(len(block.ids), -1, SIZE)
    assert block.samples.dtype == np.int16 and (frames == frames[:, :, :1]).all()
    return frames[:, :, 0].tolist()


def expected(slot: int, first: int, frames: int) -> list[int]:
    return [100 * slot + (first + n) % RING for n in range(frames)]


@torch.inference_mode()
def test_rows_share_calls_and_those_with_as_many_frames_a_block(
    engine: CapturedEngine, calls: list[tuple[int, int]]
) -> None:
    wanted = {"a": 1, "b": 3, "c": 1, "d": 11, "e": 3, "f": 9, "g": 27, "h": 2}
    known = rows(**dict.fromkeys(wanted, 40))
    for row in known.values():
        row.sounded = row.slot + 3
    sound, output = StepSound(engine.steps, known), StepOutput()
    sound.queue(wanted)
    engine.steps.wait()
    sound.collect(output)
    engine.steps.reset()
    found = {tuple(block.ids): numbers(block) for block in output.blocks}
    assert found.keys() == {("a", "c"), ("b", "e"), ("d",), ("f",), ("g",), ("h",)}
    for ids, block in found.items():
        for id, played in zip(ids, block, strict=True):
            slot = ord(id) - ord("a")
            assert played == expected(slot, slot + 3, wanted[id]), id
            assert known[id].sounded == slot + 3 + wanted[id]
    # Eights of d, f and g, and twice more of g; a two of five rows and a one of seven, padded.
    assert calls == [(2, 8), (1, 8), (1, 8), (1, 8), (8, 2), (8, 1)]


@torch.inference_mode()
def test_who_ended_is_heard_to_the_end_and_no_further(
    engine: CapturedEngine, calls: list[tuple[int, int]]
) -> None:
    """b and c were given a frame that was none; d has frames left; e failed."""
    known = rows(a=2, b=1, c=0, d=4, e=1)
    sound, output = StepSound(engine.steps, known), StepOutput()
    sound.queue({"a": 2, "b": 2, "c": 1, "d": 2, "e": 2})
    output.ended = dict.fromkeys("bcd", "complete")
    output.failed = {"e": RowError("numerics", "")}
    sound.queue({"d": 2})
    engine.steps.wait()
    sound.collect(output)
    engine.steps.reset()
    found = {tuple(block.ids): numbers(block) for block in output.blocks}
    assert found == {
        ("a",): [expected(0, 0, 2)],
        ("b",): [expected(1, 0, 1)],
        ("d",): [expected(3, 0, 4)],
    }
