"""Captured programs on CUDA: they say what the same programs say uncaptured. `pytest -m gpu`."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from realtime_tts import demo_voice
from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.model import SpeechModel, load_model
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.engine.speaking import NUCLEUS, SAMPLINGS, Utterance, same_speech, speak
from tts_scheduler import Layout

pytestmark = pytest.mark.gpu
SLOTS = 12


@cache
def model(dtype: torch.dtype) -> SpeechModel:
    return load_model(demo_voice.FOLDER, device="cuda", dtype=dtype)


def engine(dtype: torch.dtype = torch.float32, *, capture: bool) -> CapturedEngine:
    return CapturedEngine(
        model(dtype),
        Qwen2Tokenizer.from_folder(demo_voice.FOLDER),
        name="demo",
        slots=SLOTS,
        kv_positions=256 * (SLOTS + 1),
        max_frames=60,
        capture=capture,
    )


def crowd() -> list[Utterance]:
    return [
        Utterance(
            f"u{number}",
            number,
            [(37 * number + 11 * index) % 200 for index in range(3 + 5 * number)],
            UtteranceSpec(seed=number, sampling=SAMPLINGS[number % len(SAMPLINGS)]),
            Layout.FULL_TEXT if number % 3 == 2 else Layout.STREAMING,
            begins=(2 * number) % 7,
            waits=lambda step, number=number: step % (3 + number) == 2,  # type: ignore[misc]
            leaves=20 if number == 4 else None,
            codec=(1, 2, 3, 4)[number % 4],
        )
        for number in range(SLOTS)
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_captured_says_what_uncaptured_says(dtype: torch.dtype) -> None:
    told = []
    for capture in (False, True):
        each = engine(dtype, capture=capture)
        each.warm_up(lambda what, done, total: None)
        told.append(crowd())
        speak(each, told[-1], steps=120)
    same_speech(*told)
    assert all(u.codes for u in told[0])


def test_a_wide_program_captured_late_disturbs_nobody() -> None:
    told = []
    for capture in (False, True):
        each = engine(capture=capture)
        rows = [Utterance(f"u{n}", n, [5, 6, 7, n], UtteranceSpec(seed=n)) for n in range(3)]
        spec = UtteranceSpec(seed=9, sampling=NUCLEUS)
        rows.append(Utterance("wide", 3, [8, 9], spec, begins=4, leaves=9))
        told.append(rows)
        speak(each, rows, steps=30)
    same_speech(*told)


def test_a_row_with_nan_fails_alone() -> None:
    each = engine(capture=True)
    healthy, again = (
        [Utterance(f"u{n}", n, [5, 6, 7, n], UtteranceSpec(seed=n)) for n in range(3)]
        for _ in range(2)
    )
    speak(each, healthy, steps=30)

    def spoil(step: int) -> None:
        if step == 5:
            each.steps.frame_step.embeddings[3] = float("nan")

    ill = Utterance("ill", 3, [5, 6])
    speak(each, [*again, ill], steps=30, before=spoil)
    assert ill.end == "numerics"
    same_speech(healthy, again)
