"""Any text, cut anywhere and fed at any pace, spoken by the embedded voice: all of it, once, in
order, and told in its writer's own words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts import demo_voice
from realtime_tts.engine.interface import Engine
from realtime_tts.engine.load import engine_loader
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.end_to_end.feeding import EngineFeeding
from tests.properties import examples
from tests.server.feeding import Delta
from tests.server.test_pacing import (
    MODES,
    as_whole,
    cut,
    letters,
    stalls_behind_a_mark_inside,
)
from tts_scheduler import SchedulerConfig

TOKENIZER = Qwen2Tokenizer.from_folder(demo_voice.FOLDER)
WORDS = (
    "the ferry leaves tomorrow, and comes back. Why? It costs $3.50 for 25 people; we go at 3:30 🙂"
)
PAUSE = '<break time="300ms"/>'
texts = st.lists(st.sampled_from([*WORDS.split(" "), PAUSE]), min_size=3, max_size=14).map(
    lambda words: " ".join(words).lstrip() + "."
)
randoms = st.randoms(use_true_random=False)
modes = st.sampled_from(MODES)


@pytest.fixture(scope="module")
def engine() -> Engine:
    config = EngineConfig(threads=1, max_frames=400, scheduler=SchedulerConfig(slots=1))
    return engine_loader(config)(lambda *progress: None)


def fed(engine: Engine, deltas: Sequence[Delta], mode: Any, **run: float) -> EngineFeeding:
    turn = EngineFeeding(engine, TOKENIZER, pacing=mode, voice="ava", seed=7)
    turn.run(deltas, **run)
    return turn


def words_of(text: str) -> list[str]:
    """Without a mark that stands alone, as behind a pause: it is not spoken."""
    return [word for word in text.split() if letters(word)]


def with_flushes(deltas: list[Delta], random: Random) -> list[Delta]:
    for _ in range(random.choice((0, 0, 1, 3))):
        deltas.insert(random.randint(0, len(deltas)), (0.0, ""))
    return deltas


@examples(6)
@given(text=texts, random=randoms, mode=modes)
def test_every_word_of_any_feed_is_spoken_once_and_in_order(
    engine: Engine, text: str, random: Random, mode: Any
) -> None:
    deltas = with_flushes(cut(text, random), random)
    turn = fed(engine, deltas, mode)
    flushed = any(not delta for _, delta in deltas)
    if not flushed and not stalls_behind_a_mark_inside(deltas):
        assert words_of(" ".join(turn.spoken)) == words_of(as_whole(text))
    elif not any(char.isdigit() or char == "<" for char in text):
        assert letters("".join(turn.spoken)) == letters(text)
    assert turn.turn.over and turn.turn.reason == "complete"
    assert turn.turn.stats().held_inside_word == 0
    assert all(gap.after is not None for gap in turn.gaps), "speech stood still inside a word"
    if letters(as_whole(text)):
        assert turn.turn.listener.heard(None, turn.ended_at + 1).text_spoken == text
        assert "".join(word.text for word in turn.words) == text
        times = [time for word in turn.words for time in (word.start, word.end)]
        assert times == sorted(times) and times[-1] <= turn.turn.listener.made / 24_000 + 1e-6


def test_a_mark_behind_a_pause_that_comes_too_late_is_told(engine: Engine) -> None:
    turn = fed(engine, [(0.0, "back. "), (1.0, PAUSE), (0.3, ".")], "auto")
    assert turn.spoken == ["back."] and turn.turn.reason == "complete"
    assert "".join(word.text for word in turn.words) == f"back. {PAUSE}."


@examples(5)
@given(text=texts, random=randoms, mode=modes, at=st.floats(0.0, 5.0))
def test_an_interrupt_at_any_moment_tells_a_beginning_of_the_text(
    engine: Engine, text: str, random: Random, mode: Any, at: float
) -> None:
    deltas = with_flushes(cut(text, random), random)
    turn = fed(engine, deltas, mode, until=at)
    came, time = "", 0.0
    for wait, delta in deltas:
        time += wait
        came += delta if time < at else ""
    listener = turn.turn.listener
    before = ""
    for played in (0, *sorted(random.sample(range(listener.taken + 1), min(5, listener.taken)))):
        report = listener.heard(played, turn.now)
        assert report.text_spoken + report.text_remaining == came
        assert report.text_spoken.startswith(before)
        before = report.text_spoken
    told = "".join(word.text for word in turn.words)
    assert came.startswith(told)


@examples(4)
@given(text=texts.filter(lambda text: not any(map(str.isdigit, text))), random=randoms)
def test_an_interrupt_at_a_seam_tells_the_text_before_it(
    engine: Engine, text: str, random: Random
) -> None:
    deltas = cut(text, random)
    for _ in range(2):
        at = random.randrange(len(deltas))
        deltas[at] = 4.0, deltas[at][1]
    turn = fed(engine, deltas, "auto")
    said = ""
    rows = [row for row in turn.rows if row.id in turn.utterances]
    for row, behind in pairwise(rows):
        said += letters(turn.text(row))
        ends, begins = turn.utterances[row.id][1], turn.utterances[behind.id][0]
        for played in (ends, begins):
            report = turn.turn.listener.heard(played, turn.ended_at)
            assert letters(report.text_spoken) == said, (row, played)
            assert report.text_spoken + report.text_remaining == text
        spoken = [word for word in turn.words if word.end <= ends / 24_000 + 1e-6]
        assert letters("".join(word.text for word in spoken)) == said, (
            "the words of a part are in it"
        )
