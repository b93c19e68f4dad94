"""Cloned voices on the captured engine, uncaptured on a CPU: what TorchEngine says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.warm_up import ScriptedPages
from realtime_tts.model import Voice
from tests.engine.cloning import DOING, SLOTS, engine, lighter, tokenizer, voice_of
from tests.engine.speaking import (
    SAMPLINGS,
    Utterance,
    lookups,
    note,
    plan,
    same_speech,
    speak,
    speak_scheduled,
)
from tts_scheduler import Layout

CROWD = 12  # each voice with each length of text
FRAMES = 24


@pytest.fixture(scope="module")
def voices() -> dict[str, Voice]:
    """By embedding, in context, and in context with a transcript longer than the recording."""
    return {
        "alone": voice_of("xvec_st"),
        "shown": lighter(voice_of("icl_ns")),
        "wordy": replace(lighter(voice_of("icl_textlong_st")), transcript=DOING * 3),
    }


def captured(voices: dict[str, Voice]) -> CapturedEngine:
    found = engine(voices, captured=True, light=True, frames=FRAMES)
    assert isinstance(found, CapturedEngine)
    return found


def crowd(voices: dict[str, Voice]) -> list[Utterance]:
    """Each voice in both layouts, with texts that are shorter, as long and longer than a reference
    takes, some of them waiting."""
    names = list(voices)
    return [
        Utterance(
            f"u{number}",
            number % SLOTS,
            [(37 * number + 11 * index) % 200 for index in range((2, 19, 18, 30)[number % 4])],
            UtteranceSpec(
                voice=names[number % 3], seed=number, sampling=SAMPLINGS[number % len(SAMPLINGS)]
            ),
            Layout.FULL_TEXT if number // 3 % 2 else Layout.STREAMING,
            begins=(2 * number) % 5 + 45 * (number // SLOTS),
            waits=lambda step, number=number: step % (3 + number) == 2,  # type: ignore[misc]
            codec=(1, 2, 3, 4)[number % 4],
        )
        for number in range(CROWD)
    ]


@pytest.fixture(scope="module")
def together(voices: dict[str, Voice]) -> list[Utterance]:
    """The crowd, and what it said on a captured engine."""
    told = crowd(voices)
    speak(captured(voices), told, steps=100)
    return told


def test_cloned_voices_speak_as_with_the_torch_engine(
    voices: dict[str, Voice], together: list[Utterance]
) -> None:
    """Four slots are used twice, by different voices."""
    told = crowd(voices)
    speak(engine(voices, light=True, frames=FRAMES), told, steps=100)
    same_speech(told, together)
    assert all(len(u.codes) == FRAMES for u in told)


def test_a_clone_is_the_same_alone_and_among_others(
    voices: dict[str, Voice], together: list[Utterance]
) -> None:
    each = captured(voices)
    alone = crowd(voices)[:6]  # every voice in both layouts, length of text and way to draw
    for number, utterance in enumerate(alone):
        utterance.slot = (number + 3) % SLOTS
        speak(each, [utterance], steps=60)
    for one, other in zip(together, alone, strict=False):
        assert one.codes == other.codes, one.id


def test_text_that_arrives_step_by_step_changes_nothing(voices: dict[str, Voice]) -> None:
    """A streaming prompt takes the text it needs; the rest comes one token before each frame."""
    ids = [(7 * index) % 200 for index in range(30)]
    each = captured(voices)
    specs = [UtteranceSpec(voice=name, seed=3) for name in voices]
    whole = [Utterance(f"{spec.voice}", n, ids, spec) for n, spec in enumerate(specs)]
    speak(each, whole, steps=60)
    rows = [Utterance(f"{spec.voice}", 3 + n, ids, spec) for n, spec in enumerate(specs)]
    fed = {row.id: max(1, each.text_needed(row.spec)) for row in rows}
    for row in rows:
        each.open(row.id, row.spec)
        each.append(row.id, ids[: fed[row.id]])
    pages = ScriptedPages(SLOTS, each.kv_cache)
    for _ in range(FRAMES):
        note(each, each.step(pages.added_to(plan(each, rows))), rows)
        for row in (row for row in rows if row.end is None):
            each.append(row.id, ids[fed[row.id] : fed[row.id] + 1])
            fed[row.id] += 1
            if fed[row.id] == len(ids):
                each.finish(row.id)
    for row, other in zip(rows, whole, strict=True):
        assert row.codes == other.codes and len(row.codes) == FRAMES, row.id


def test_the_prefix_of_a_voice_is_computed_once(voices: dict[str, Voice]) -> None:
    each = captured(voices)
    found = lookups(each.prefixes)
    for number, name in enumerate(("alone", "shown", "alone", "shown", "alone")):
        speak(each, [Utterance(f"u{number}", number, [5, 6], UtteranceSpec(voice=name))], steps=2)
    assert found == [False, False, True, True, True]


def test_a_text_that_does_not_fit_behind_its_recording_is_refused(
    voices: dict[str, Voice],
) -> None:
    """Before anything of the row is touched; others go on."""
    each = captured(voices)
    rows = [
        Utterance("long", 0, [5] * 40_000, UtteranceSpec(voice="shown"), Layout.FULL_TEXT),
        Utterance("good", 1, [5, 6], UtteranceSpec(voice="shown"), Layout.FULL_TEXT),
    ]
    speak(each, rows, steps=60)
    assert (rows[0].end, rows[0].codes) == ("bad_request", [])
    assert len(rows[1].codes) == FRAMES


def test_a_clone_that_was_swapped_out_goes_on_where_it_was(voices: dict[str, Voice]) -> None:
    """Memory for not quite two such turns: one has to give way, and says the same later."""
    told = []
    for positions in (256 * SLOTS, 160):
        found = engine(voices, light=True)
        each = CapturedEngine(
            found.model,
            tokenizer(),
            name="base",
            slots=2,
            kv_positions=positions,
            max_frames=40,
            voices=voices.get,
        )
        rows = [
            Utterance(f"u{n}", n, [5] * 20, UtteranceSpec(voice="shown", seed=n)) for n in range(2)
        ]
        told.append(rows)
        plans = speak_scheduled(each, rows)
        assert any(plan.swap_outs for plan in plans) == (positions == 160)
    same_speech(*told)
