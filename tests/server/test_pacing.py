"""How text is given to the engine while it comes: nothing is lost, and no word stands still."""

from __future__ import annotations

from itertools import accumulate
from math import ceil, inf
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts import demo_voice
from realtime_tts.engine.link import Ended
from realtime_tts.text.languages import language_for
from realtime_tts.text.pipeline import TextPipeline
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from realtime_tts.text.unspoken import End, end_of
from tests.properties import examples
from tests.server.feeding import (
    FRAMES,
    STEP,
    TEXTS,
    Delta,
    Feeding,
    Row,
    at_pace,
    by_sentence,
)
from tts_scheduler import FeedPace

TOKENIZER = Qwen2Tokenizer.from_folder(demo_voice.FOLDER)
MODES = ("auto", "token", "clause", "sentence")
WORDS = "a the ferry leaves reservation tomorrow, and comes back. Why? $3.50 25 Smith; 3:30 no! 🙂"
PAUSE = '<break time="300ms"/>'
texts = st.lists(st.sampled_from([*WORDS.split(" "), PAUSE]), min_size=1, max_size=40).map(" ".join)


def as_whole(text: str) -> str:
    """What is to be spoken."""
    pipeline = TextPipeline(TOKENIZER, language=language_for("english"))
    pipeline.feed(text, 0.0)
    pipeline.finish(0.0)
    return pipeline.spoken


def letters(text: str) -> str:
    """Without marks, of which one alone is not spoken."""
    return "".join(filter(str.isalnum, text))


def cut(text: str, random: Random) -> list[Delta]:
    """In pieces of any size that come at any time."""
    deltas: list[Delta] = []
    waits = (0.0, 0.01, 0.05, 0.1, 0.2, 0.35)
    while text:
        size = random.choice((1, 2, 4, 5, 8, 60))
        wait = random.choice((1.0, 5.0)) if random.random() < 0.03 else random.choice(waits)
        deltas.append((wait, text[:size]))
        text = text[size:]
    return deltas


def stalls_behind_a_mark_inside(deltas: list[Delta]) -> bool:
    """Whether a number stalls behind its `.` or `:`, which could be its end (docs/text.md)."""
    befores = accumulate(text for _, text in deltas)
    return any(
        wait >= 0.35
        and before[-1:] in (".", ":")
        and before[-2:-1].isdigit()
        and text[:1].isdigit()
        for before, (wait, text) in zip(befores, deltas[1:], strict=False)
    )


@examples(60)
@given(texts, st.randoms(use_true_random=False), st.sampled_from(MODES), st.sampled_from([0, 25]))
def test_every_word_is_spoken_once_and_in_order_and_none_is_parted(
    text: str, random: Random, mode: Any, safe_tokens: int
) -> None:
    deltas = cut(text, random)
    turn = Feeding(TOKENIZER, pacing=mode, safe_tokens=safe_tokens)
    turn.run(deltas)
    if not stalls_behind_a_mark_inside(deltas):
        assert " ".join(turn.spoken).split() == as_whole(text).split()
    assert turn.turn.over and turn.turn.reason == "complete"
    if letters(as_whole(text)):
        assert turn.turn.listener.heard(None, turn.ended_at + 1).text_spoken == text
    assert all(gap.after is not None for gap in turn.gaps), "speech stood still inside an utterance"
    assert turn.turn.stats().held_inside_word == 0
    if safe_tokens:
        assert all(len(row.ids) <= safe_tokens + 3 for row in turn.rows)


@examples(60)
@given(st.sampled_from(TEXTS), st.randoms(use_true_random=False))
def test_flushes_anywhere_lose_and_repeat_nothing(text: str, random: Random) -> None:
    deltas = cut(text, random)
    for _ in range(random.randint(1, 4)):
        deltas.insert(random.randint(0, len(deltas)), (0.0, ""))
    turn = Feeding(TOKENIZER)
    turn.run(deltas)
    assert letters("".join(turn.spoken)) == letters(text)
    assert all(gap.after is not None for gap in turn.gaps)


@examples(60)
@given(texts, st.randoms(use_true_random=False), st.floats(0.0, 6.0))
def test_a_turn_stopped_anywhere_tells_a_beginning_of_its_text(
    text: str, random: Random, at: float
) -> None:
    turn = Feeding(TOKENIZER)
    deltas = cut(text, random)
    turn.run(deltas, until=at)
    came, time = "", 0.0
    for wait, delta in deltas:
        time += wait
        came += delta if time <= turn.now else ""
    report = turn.turn.listener.heard(None, at)
    assert report.text_spoken + report.text_remaining == came
    later = Feeding(TOKENIZER)
    later.run(deltas, until=at + 0.5)
    assert later.turn.listener.heard(None, at + 0.5).text_spoken.startswith(report.text_spoken)


@pytest.mark.parametrize("seconds", [1.0, 4.0, 15.0])
@pytest.mark.parametrize(
    ("before", "behind", "last"),
    [
        ("Let me check that for you. ", "I have found it.", "you."),
        ("Let me check that for you.", " I have found it.", "you."),
        ("Let me check", " that for you. I have found it.", "me"),
        ("Let me check that fo", "r you. I have found it.", "that"),
    ],
)
def test_a_text_that_stalls_is_spoken_to_its_last_whole_word(
    before: str, behind: str, last: str, seconds: float
) -> None:
    """Behind a sentence, behind its mark, in a clause and in a word."""
    deltas = at_pace(before, 60, Random(1))
    stalled, turn = Feeding(TOKENIZER), Feeding(TOKENIZER)
    rest = [(seconds, behind[:4]), *at_pace(behind[4:], 60, Random(1))]
    stalled.run([*deltas, *rest], until=sum(wait for wait, _ in deltas) + seconds - 0.01)
    said = " ".join(stalled.spoken)
    assert said.split()[-1] == last
    if seconds > 1.0:
        assert stalled.rows[-1].over
        length = ceil(FRAMES * sum(len(row.ids) for row in stalled.rows)) * 0.08
        assert stalled.turn.listener.dry_at(stalled.now) <= stalled.first_at + length + 0.3
    turn.run([*deltas, *rest])
    assert " ".join(turn.spoken) == before + behind
    assert all(gap.after is not None for gap in turn.gaps)


@pytest.mark.parametrize("before", ["I found three tables for ", "I found three tables fo"])
def test_a_text_that_stalls_is_closed_in_time_for_a_step_four_times_as_long_as_usual(
    before: str,
) -> None:
    """What the others in the engine do just then is not known."""

    def step_of(row: Row) -> float:
        return 0.06 if row.finished else 0.015

    turn = Feeding(TOKENIZER, step_of=step_of)
    for _ in range(20):
        turn.reaction.note(0.015)
    turn.run([*at_pace(before, 60, Random(1)), (1.0, "r you.")])
    assert turn.seams(End.WORD) == 1
    assert not [gap for gap in turn.gaps if gap.after is None]


@pytest.mark.parametrize("rate", [60.0, 30.0, 15.0])
@pytest.mark.parametrize("text", TEXTS)
def test_a_fast_text_is_spoken_by_the_word_from_its_second_one_on(rate: float, text: str) -> None:
    turn = Feeding(TOKENIZER)
    turn.run(at_pace(text, rate, Random(0)))
    assert turn.first_at <= 2 / rate + 1.5 * STEP, "its first sound, since there is text for more"
    assert not turn.gaps and turn.seams(End.WORD) == 0


@pytest.mark.parametrize("rate", [10.0, 5.0, 3.0])
@pytest.mark.parametrize("text", TEXTS)
def test_a_slow_text_pauses_between_its_clauses_only_and_is_not_later_than_by_sentences(
    rate: float, text: str
) -> None:
    deltas = at_pace(text, rate, Random(0))
    turn, sentences = Feeding(TOKENIZER), Feeding(TOKENIZER)
    turn.run(deltas)
    sentences.run(list(by_sentence(deltas)))
    for fed in (turn, sentences):
        assert fed.silence(None, End.WORD) == 0 and fed.seams(End.WORD) == 0
    rounding = 0.2  # each utterance has whole frames, and begins without a space
    assert turn.first_at <= sentences.first_at
    assert turn.ended_at <= sentences.ended_at + rounding
    clause, at = "", 0.0
    for wait, delta in deltas:
        at += wait
        clause += delta
        if end_of(clause + " ") != End.WORD:
            break
    assert turn.first_at <= at + 1 / rate + 0.05


def test_the_pace_of_a_session_is_known_at_its_next_turn() -> None:
    """A feed that begins like a fast one."""
    pace = FeedPace()
    deltas = at_pace(TEXTS[2], 5.0, Random(0))
    Feeding(TOKENIZER, pace=pace).run(deltas)
    quick = [(0.0, deltas[0][1]), *((0.02, text) for _, text in deltas[1:3]), *deltas[3:]]
    first, later = Feeding(TOKENIZER), Feeding(TOKENIZER, pace=pace)
    first.run(quick)
    later.run(quick)
    assert first.seams(End.WORD) > 0 and later.seams(End.WORD) == 0


def test_a_long_text_is_spoken_by_sentences_that_fit() -> None:
    turn = Feeding(TOKENIZER, safe_tokens=60)
    text = " ".join(TEXTS * 4)
    turn.run([(0.0, text)])
    assert " ".join(turn.spoken) == text
    assert 40 < max(len(row.ids) for row in turn.rows) <= 66, "how many there are is an estimate"
    assert all(end_of(text + " ") == End.SENTENCE for text in turn.spoken)
    assert turn.turn.reason == "complete" and not turn.gaps


@pytest.mark.parametrize("rate", [60.0, 5.0])
def test_a_voice_that_waits_for_its_text_is_given_whole_sentences(rate: float) -> None:
    """Its prompt takes 90 tokens of the text, or all there are."""
    deltas = at_pace(TEXTS[0], rate, Random(0))
    turn = Feeding(TOKENIZER, in_context=True)
    turn.run(deltas)
    assert " ".join(turn.spoken) == TEXTS[0]
    assert all(end_of(text + " ") == End.SENTENCE for text in turn.spoken) and len(turn.rows) > 1
    assert turn.first_at <= 6 / rate + 0.1


def test_a_word_longer_than_any_utterance_is_cut() -> None:
    turn = Feeding(TOKENIZER, safe_tokens=20)
    turn.run([(0.0, "x" * 200)])
    assert "".join(turn.spoken) == "x" * 200 and len(turn.rows) > 1


@pytest.mark.parametrize(
    ("before", "behind", "spoken"),
    [
        ("The reser", "vation is made.", ["The reser", "vation is made."]),
        ("It costs $2", ".50 today.", ["It costs two dollars", "point five zero today."]),
        ("At 12:3", "0 we go.", ["At twelve to three", "zero we go."]),
        ("Ask Dr", ". Ann.", ["Ask Drive", ". Ann."]),
        ("Wait <bre", "ak> now.", ["Wait", "now."]),
        ("Go. ", ' <break time="1s"/>On.', ["Go.", "On."]),
        ("Go", " on.", ["Go", "on."]),
    ],
)
def test_a_flush_ends_what_it_falls_into(before: str, behind: str, spoken: list[str]) -> None:
    """PROTOCOL.md says so: it is the one thing that parts a word or a number, though no tag."""
    turn = Feeding(TOKENIZER)
    turn.run([(0.0, before), (0.01, ""), (3.0, behind)])
    assert [text for text in turn.spoken if letters(text)] == spoken
    assert turn.turn.listener.heard(None, turn.ended_at + 1).text_spoken == before + behind


def test_a_turn_that_a_guard_has_ended_wakes_nobody_for_its_text() -> None:
    turn = Feeding(TOKENIZER)
    turn.run([(0.0, "Let me check that for you, and th"), (9.0, "en")], until=0.3)
    assert turn.turn.text_deadline() < 1.0
    turn.turn.take(Ended(turn.rows[-1].id, "max_length", 9, 0.0), turn.now)
    assert turn.turn.over and turn.turn.text_deadline() == inf
