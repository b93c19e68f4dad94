"""CapturedEngine, uncaptured on a CPU: it says what TorchEngine says, whatever happens beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from realtime_tts import demo_voice
from realtime_tts.engine import captured_steps, filling
from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.graphs import Buckets
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.torch_engine import TorchEngine
from realtime_tts.errors import ConfigError
from realtime_tts.model import SpeechModel, load_model
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.engine.speaking import NUCLEUS, SAMPLINGS, USUAL, Utterance, lookups, same_speech, speak
from tests.model.light import light_model
from tests.parity import GREEDY, PARITY
from tts_scheduler import Layout

TINY = PARITY / "tiny-custom_voice"
SLOTS = 6
TOO_LONG = 32_768
HEADS = ((0, 1), (1, 0), (1, 2))
"""Of the random model they look anywhere, but in all engines at the same."""

pytestmark = pytest.mark.usefixtures("one_thread")


@cache
def loaded(folder: Path, min_frames: int) -> tuple[SpeechModel, Qwen2Tokenizer]:
    model = light_model(folder) if folder == TINY else load_model(folder)
    model.config = replace(
        model.config,
        generation=replace(model.config.generation, min_frames=min_frames),
        alignment_heads=model.config.alignment_heads or HEADS,
    )
    return model, Qwen2Tokenizer.from_folder(folder)


def captured(
    folder: Path = TINY,
    *,
    min_frames: int = 14,
    max_frames: int = 18,
    slots: int = SLOTS,
    kv_positions: int | None = None,
) -> CapturedEngine:
    model, tokenizer = loaded(folder, min_frames)
    return CapturedEngine(
        model,
        tokenizer,
        name="captured",
        slots=slots,
        kv_positions=600 if kv_positions is None else kv_positions,
        max_frames=max_frames,
    )


def plain(
    folder: Path = TINY, *, min_frames: int = 14, max_frames: int = 18, slots: int = SLOTS
) -> TorchEngine:
    model, tokenizer = loaded(folder, min_frames)
    return TorchEngine(model, tokenizer, name="plain", slots=slots, max_frames=max_frames)


def crowd(voices: tuple[str, ...], size: int = SLOTS) -> list[Utterance]:
    """Utterances that differ in all that utterances can differ in, joining and leaving.

    With these seeds no two codes come so close that the rounding of a processor's products decides:
    tried with AVX2, AVX and neither. With seed 0 the first utterance differed on AVX2.
    """
    return [
        Utterance(
            id=f"u{number}",
            slot=number,
            ids=[(37 * number + 11 * index) % 200 for index in range(3 + 5 * number)],
            spec=UtteranceSpec(
                voice=voices[number % len(voices)],
                seed=40 + number,
                sampling=SAMPLINGS[number % len(SAMPLINGS)],
            ),
            layout=Layout.FULL_TEXT if number % 3 == 2 else Layout.STREAMING,
            begins=(number * 2) % 5,
            waits=lambda step, number=number: step % (3 + number) == 2,  # type: ignore[misc]
            codec=(1, 2, 3, 4)[number % 4],
        )
        for number in range(size)
    ]


@cache
def undisturbed(folder: Path = TINY, size: int = SLOTS, max_frames: int = 18) -> list[Utterance]:
    """The crowd, and what it said on a captured engine of its own."""
    engine = captured(folder, max_frames=max_frames)
    told = crowd(engine.info.voices, size)
    speak(engine, told, steps=60)
    return told


@pytest.mark.parametrize(
    ("folder", "size", "max_frames"),
    [(TINY, SLOTS, 18), (demo_voice.FOLDER, 4, 24)],
    ids=["random", "demo voice"],
)
def test_a_mixed_crowd_speaks_as_with_the_torch_engine(
    folder: Path, size: int, max_frames: int
) -> None:
    engine = plain(folder, max_frames=max_frames)
    told = crowd(engine.info.voices, size)
    speak(engine, told, steps=60)
    same_speech(told, undisturbed(folder, size, max_frames))
    assert all(len(u.codes) >= 14 for u in told)
    assert all(len(u.tokens) == len(u.codes) and max(u.tokens) < len(u.ids) for u in told)
    assert {u.end for u in told} == {"complete", "max_length"}


def test_speech_ends_where_it_ends_with_the_torch_engine() -> None:
    """Without least numbers of frames, noise ends at once, or any time."""
    told: list[list[Utterance]] = []
    for engine in (plain(min_frames=0, slots=3), captured(min_frames=0, slots=5)):
        told.append(
            [
                Utterance(f"u{n}", n % 3, [n, 2], UtteranceSpec(seed=n), begins=20 * (n // 3))
                for n in range(12)
            ]
        )
        speak(engine, told[-1], steps=100)
    same_speech(*told)
    assert len({len(u.codes) for u in told[0]}) > 3
    assert isinstance(engine, CapturedEngine)
    step = engine.steps.frame_step
    assert step.codes.max() < engine.model.config.predictor.vocab, "end of speech is no code"
    assert step.positions[-1] == 0, "padding stays where it is"


def test_a_row_is_the_same_alone_and_in_every_size_of_batch() -> None:
    engine = captured()
    alone = crowd(engine.info.voices)
    for number, utterance in enumerate(alone):
        utterance.slot = (number + 2) % SLOTS
        speak(engine, [utterance], steps=60)
    same_speech(undisturbed(), alone)


def test_another_seed_speaks_otherwise() -> None:
    engine = captured()
    rows = [Utterance(f"u{s}", s, [5, 6], UtteranceSpec(seed=s % 2)) for s in range(3)]
    speak(engine, rows, steps=12)
    assert rows[0].codes == rows[2].codes != rows[1].codes


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_row_with_nan_fails_alone_and_its_slot_forgets_it(poison: float) -> None:
    engine = captured()
    again = crowd(engine.info.voices)
    ill = Utterance("ill", 0, again[0].ids, again[0].spec, begins=0)
    again[0].begins += 12

    def spoil(step: int) -> None:
        if step == 10:
            engine.steps.frame_step.embeddings[0] = poison

    speak(engine, [ill, *again[1:], again[0]], steps=80, before=spoil)
    assert ill.end == "numerics" and len(ill.codes) == 10
    same_speech(undisturbed(), again)


def test_a_cached_prefix_speaks_like_a_computed_one() -> None:
    engine = captured()
    spec = UtteranceSpec(voice=engine.info.voices[1], language="english", seed=3)
    rows = [
        Utterance(f"{layout}-{turn}", turn, [7, 8, 9], spec, layout)
        for layout in (Layout.STREAMING, Layout.FULL_TEXT)
        for turn in range(2)
    ]
    found = lookups(engine.prefixes)
    for row in rows:
        speak(engine, [row], steps=10)
    assert found == [False, True, True, True]
    assert rows[0].codes == rows[1].codes
    assert rows[2].codes == rows[3].codes != rows[0].codes


def test_who_is_interrupted_leaves_nothing_behind() -> None:
    engine = captured()
    first = [replace(u, id=f"first-{u.id}", leaves=6 + u.slot) for u in crowd(("serena",))]
    second = crowd(engine.info.voices)
    for utterance in second:
        utterance.begins = 14
    speak(engine, [*first, *second], steps=80)
    assert all(u.end == "left" for u in first)
    for one, other in zip(undisturbed(), second, strict=True):
        assert one.codes == other.codes


def test_a_text_longer_than_the_captured_prompts_is_spoken() -> None:
    told = []
    for engine in (plain(), captured(kv_positions=700)):
        long = [index % 150 for index in range(300)]
        told.append([Utterance("long", 0, long, layout=Layout.FULL_TEXT)])
        speak(engine, told[-1], steps=12)
    assert len(told[1][0].codes) == 12
    same_speech(*told)


def test_prompts_that_begin_together_are_packed_and_none_hears_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Into programs of 16 positions and two prompts, and one prompt that is too long for them."""
    filled: list[list[int]] = []

    def crowd() -> list[Utterance]:
        return [
            Utterance(
                f"u{slot}", slot, list(range(length)), UtteranceSpec(seed=slot), Layout.FULL_TEXT
            )
            for slot, length in enumerate((3, 11, 9, 2, 14, 1))
        ]

    alone, together = crowd(), crowd()
    for one in alone:
        speak(captured(), [one], steps=6)
    monkeypatch.setattr(captured_steps, "PROMPT_POSITIONS", Buckets((8, 16)))
    monkeypatch.setattr(captured_steps, "MOST_PROMPT", 12)
    monkeypatch.setattr(filling, "MOST_PROMPT_ROWS", 2)
    engine = captured()
    fill = engine.steps._fill

    def noted(fillings: Sequence[filling.Filling]) -> None:
        filled.append([len(filling.ids) for filling in fillings])
        fill(fillings)

    monkeypatch.setattr(engine.steps, "_fill", noted)
    speak(engine, together, steps=6)
    # With the two positions behind the text; 13 and 16 are too many for a program.
    assert filled == [[5, 11], [4, 3]]
    same_speech(together, alone)


def test_requests_that_cannot_be_fail_alone() -> None:
    for engine, most in ((plain(), TOO_LONG), (captured(), 600)):
        good, none = Utterance("good", 0, [3, 4]), Utterance("none", 1, [])
        long = Utterance("long", 2, [1] * most, layout=Layout.FULL_TEXT)
        bad = msgspec.structs.replace(USUAL, repetition_penalty=-1.0)
        odd = Utterance("odd", 3, [3, 4], UtteranceSpec(sampling=bad))
        speak(engine, [good, none, long, odd], steps=5)
        assert [u.end for u in (good, none, long, odd)] == [None] + ["bad_request"] * 3
        assert len(good.codes) == 5


def test_the_wide_program_runs_only_for_those_who_need_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, ran = captured(), list[Any]()
    run = engine.steps.graphs.run

    def running(key: Any, work: Any) -> None:
        ran.append(key)
        run(key, work)

    monkeypatch.setattr(engine.steps.graphs, "run", running)
    rows = [
        Utterance("usual", 0, [3, 4]),
        Utterance("wide", 1, [3, 4], UtteranceSpec(sampling=NUCLEUS), begins=2, leaves=4),
        Utterance("greedy", 2, [3, 4], UtteranceSpec(sampling=GREEDY)),
    ]
    speak(engine, rows, steps=6)
    assert [key for key in ran if key[0] == "frame"] == [
        ("frame", 2, False),
        ("frame", 2, False),
        ("frame", 4, True),
        ("frame", 4, True),
        ("frame", 2, False),
        ("frame", 2, False),
    ]


def test_warming_up_leaves_the_engine_as_it_was() -> None:
    engine, fresh = captured(slots=2), captured(slots=2)
    found = lookups(engine.prefixes)
    engine.warm_up(lambda what, done, total: None)
    told = []
    for each in (engine, fresh):
        told.append(crowd(each.info.voices, size=2))
        speak(each, told[-1], steps=20)
    same_speech(*told)
    assert found and all(found), "every voice was kept"


def test_warming_up_measures_every_size_of_batch_with_the_codec() -> None:
    engine = captured(slots=3)
    assert engine.info.row_buckets == (1, 2, 3)
    measured = engine.warm_up(lambda what, done, total: None)
    decoded = [step.plan for step in measured if step.plan.decodes]
    assert {plan.rows for plan in decoded} == {1, 2, 3}
    for rows in (1, 2, 3):
        codec = {plan.codec_frames for plan in decoded if plan.rows == rows}
        assert codec == {0, rows, 2 * rows, 4 * rows}


# Memory ----------------------------------------------------------------------------------------


def test_memory_for_less_than_one_turn_is_refused() -> None:
    with pytest.raises(ConfigError, match="one turn of 40 frames takes 104"):
        captured(kv_positions=100, max_frames=40)
