"""What a GPU runs of the talker and the predictor, pages and fused operations, by their plain
references on a CPU: the best codes are those of the plain modules, whatever happens beside."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from realtime_tts import demo_voice
from realtime_tts.engine import captured_engine
from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.torch_engine import TorchEngine
from realtime_tts.model import load_model
from realtime_tts.model.paged_cache import PagedKVCache
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.engine.speaking import HOT, USUAL, Utterance, same_speech, speak
from tests.model.light import light_model
from tests.parity import GREEDY, PARITY
from tts_scheduler import Layout

SLOTS = 6


paged = partial(PagedKVCache, positions=256)
"""On a CPU the work of every step follows the width of the tables."""


@pytest.mark.parametrize(
    ("folder", "frames"),
    [(PARITY / "tiny-custom_voice", 14), (demo_voice.FOLDER, 8)],
    ids=["random", "demo voice"],
)
def test_pages_and_fused_operations_say_what_the_plain_modules_say(
    folder: Path, frames: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(captured_engine, "PagedKVCache", paged)
    load = load_model if folder == demo_voice.FOLDER else light_model
    model, tokenizer = load(folder), Qwen2Tokenizer.from_folder(folder)
    one = TorchEngine(model, tokenizer, name="plain", slots=SLOTS, max_frames=frames)
    other = CapturedEngine(
        model, tokenizer, name="pages", slots=SLOTS, kv_positions=1600, max_frames=frames
    )
    other.steps.frame_step.sampling.fused = True
    told = []
    for engine in (one, other):
        told.append(
            [
                Utterance(
                    id=f"u{number}",
                    slot=number,
                    ids=[(37 * number + 11 * index) % 200 for index in range(3 + 5 * number)],
                    spec=UtteranceSpec(
                        voice=engine.info.voices[number % len(engine.info.voices)],
                        # No draw is near the edge between two codes: 5e-5 of the whole or more,
                        # where the rounding of the two engines differs by 3e-6.
                        seed=400 + number,
                        sampling=(GREEDY, USUAL, HOT)[number % 3],
                    ),
                    layout=Layout.FULL_TEXT if number % 3 == 2 else Layout.STREAMING,
                    begins=(number * 2) % 5,
                    waits=lambda step, number=number: step % (3 + number) == 2,  # type: ignore[misc]
                    leaves=8 if number == 4 else None,
                )
                for number in range(SLOTS)
            ]
        )
        speak(engine, told[-1], steps=60)
    same_speech(*told)
    assert all(u.codes for u in told[0])
