"""Texts for a round of own speech: as many of each kind, each once, questions by one voice."""

from __future__ import annotations

from random import Random

from tools.demo_voice.own_speech import voice_of
from tools.demo_voice.own_texts import mixed
from tools.demo_voice.phonetics import spelled_out
from tools.demo_voice.questions import rises
from tools.demo_voice.speech import VOICE_NAMES

COUNT = 8
SENTENCES = [
    *(f"He saw {number} ships in the harbour today." for number in range(100, 140)),
    *(f"She saw {number} ships or boats." for number in range(500, 540)),  # asks for no yes or no
    *(f"Ships leave the harbour at {number} past nine." for number in range(10, 50)),
    *(f"Can you see {number} ships from here?" for number in range(200, 240)),
]
REPLIES = [f"Ship {number} left." for number in range(300, 340)]


def lines(seed: int) -> list[str]:
    return [*mixed(SENTENCES, REPLIES, COUNT, "ava", "ray", Random(seed))]


def voices(lines: list[str]) -> set[str]:
    """Who says them: `own_speech` gives a text to the voice of its first sentence."""
    return {VOICE_NAMES[voice_of(spelled_out(line))] for line in lines}


def test_every_fourth_line_is_of_the_same_kind_and_none_comes_twice() -> None:
    found = lines(1)
    assert len(found) == len({*found}) == 4 * COUNT
    begins, replies, others, questions = (found[kind::4] for kind in range(4))
    assert all(line.startswith(("He saw", "She saw")) for line in begins)
    assert voices(begins) == {"ava"} and voices(others) == {"ava", "ray"}
    assert {*replies} <= {*REPLIES} and {*others} <= {*SENTENCES}
    assert all(rises(line) for line in questions)


def test_questions_are_those_of_the_voice_and_a_third_of_them_statements() -> None:
    questions = lines(2)[3::4]
    assert voices(questions) == {"ray"}
    assert sum(line.startswith("He saw") for line in questions) == round(COUNT / 3)


def test_what_is_rare_limits_all_kinds() -> None:
    few = [*mixed(SENTENCES, REPLIES[:3], COUNT, "ava", "ava", Random(3))]
    assert len(few) == 12 and {*few[1::4]} == {*REPLIES[:3]}


def test_the_same_seed_gives_the_same_lines() -> None:
    assert lines(4) == lines(4) != lines(5)
