"""The captured engine says what the official package says: uncaptured, and captured on CUDA."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from msgspec.structs import replace as changed

from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.warm_up import ScriptedPages
from realtime_tts.model import Voice, load_model
from realtime_tts.model.frame_step import RING
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.engine.cloning import voice_of
from tests.engine.speaking import Utterance, note, plan
from tests.parity import GREEDY, PARITY, rows_of
from tts_scheduler import Layout

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
VARIANTS = ["custom_voice", "voice_design", "base"]


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    """One thread, and float32 that is float32."""
    threads, rough = torch.get_num_threads(), torch.backends.cudnn.allow_tf32
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.set_num_threads(threads)
    torch.backends.cudnn.allow_tf32 = rough


def load(
    variant: str, device: str, slots: int, min_frames: int, voices: dict[str, Voice]
) -> CapturedEngine:
    folder = PARITY / f"tiny-{variant}"
    model = load_model(folder, device=device)
    generation = replace(model.config.generation, min_frames=min_frames)
    model.config = replace(model.config, generation=generation)
    tokenizer = Qwen2Tokenizer.from_folder(folder)
    return CapturedEngine(
        model,
        tokenizer,
        name=variant,
        slots=slots,
        kv_positions=512 + (64 if device == "cpu" else 256) * (slots + 1),
        max_frames=100,
        voices=voices.get,
    )


def utterance(
    variant: str, name: str, slot: int, given: dict[str, Any], ids: list[int]
) -> Utterance:
    penalty = given.get("repetition_penalty", 1.05)
    sampling = changed(GREEDY, repetition_penalty=penalty)
    spec = UtteranceSpec(
        voice=name if variant == "base" else given.get("speaker"),
        language=given.get("language"),
        instructions=given.get("instruct"),
        sampling=sampling,
    )
    layout = Layout.FULL_TEXT if given.get("non_streaming_mode") else Layout.STREAMING
    return Utterance(name, slot, ids, spec, layout, begins=slot % 3)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("to_the_end", [False, True])
def test_every_stored_case_is_spoken(variant: str, to_the_end: bool, device: str) -> None:
    """All cases at once, in one engine; those `to_the_end` end with end of speech."""
    with np.load(PARITY / f"tiny-{variant}.npz") as file:
        stored = dict(file)
    cases = [
        c for c in rows_of(json.loads(str(stored["meta"]))) if c[0].endswith("_eos") == to_the_end
    ]
    if not cases:
        assert variant != "custom_voice" and to_the_end  # the only set with such cases
        return
    rows = [
        utterance(variant, name, slot, given, stored[f"{name}/input_ids"][3:-5].tolist())
        for slot, (name, given) in enumerate(cases)
    ]
    voices = {name: voice_of(name) for name, _ in cases} if variant == "base" else {}
    engine = load(variant, device, len(rows), 0 if to_the_end else 10**6, voices)
    for row in rows:
        engine.open(row.id, row.spec)
        engine.append(row.id, row.ids)
        engine.finish(row.id)
    pages = ScriptedPages(len(rows), engine.kv_cache)
    codes: dict[str, list[list[int]]] = {row.id: [] for row in rows}
    wanted = {row.id: stored[f"{row.id}/codes"].tolist() for row in rows}
    for step in range(110):
        live = [
            row
            for row in rows
            if row.begins <= step
            and row.end is None
            and (to_the_end or len(codes[row.id]) < len(wanted[row.id]))
        ]
        if not live:
            break
        output = engine.step(pages.added_to(plan(engine, live)))
        assert all(row.id in output.frames or row.id in output.ended for row in live)
        for row in live:
            if row.id in output.frames:
                place = len(codes[row.id]) % RING
                codes[row.id].append(engine.steps.frame_step.codes[row.slot, place].tolist())
        note(engine, output, live)
    for row in rows:
        assert codes[row.id] == wanted[row.id], row.id
        assert row.end == ("complete" if to_the_end else None), row.id
        np.testing.assert_allclose(row.sound, stored[f"{row.id}/wav"], atol=1e-4, rtol=0)
