"""What was heard: the caller's text in two parts, cut at a word, never shrinking as time passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.text.pipeline import TextPipeline
from realtime_tts.text.spoken import split_at, split_spoken
from realtime_tts.text.tokenizer import Qwen2Tokenizer

TOKENIZER = Qwen2Tokenizer.from_folder(Path(__file__).parent / "data" / "tiny_tokenizer")

FRAGMENTS = [
    "Hello",
    " there",
    ", ",
    ". ",
    "你好",
    "。",
    "ありがとう",
    "สวัสดี",
    "한국",
    " 42",
    "**",
    "`",
]
FRAGMENTS += ["[a label](u)", "\n", "🙂", "\ud83d", "\ude00", "e\u0301", "\x00", "| ", "# "]
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=15).map("".join)
seconds = st.floats(0, 60)


def pipeline_of(text: str, finished: bool = True, filtered: bool = True) -> TextPipeline:
    pipeline = TextPipeline(TOKENIZER, filtered=filtered)
    pipeline.feed(text, 0.0)
    if finished:
        pipeline.finish(0.0)
    return pipeline


@given(texts, seconds, seconds, st.booleans(), st.booleans())
def test_the_parts_joined_are_the_source(
    text: str, played: float, generated: float, complete: bool, filtered: bool
) -> None:
    pipeline = pipeline_of(text, complete, filtered)
    split = split_spoken(pipeline, played, generated, complete=complete)
    assert split.spoken + split.remaining == text


@given(texts, st.lists(seconds, min_size=2, max_size=6), seconds, st.booleans())
def test_more_played_is_never_less_spoken(
    text: str, times: list[float], generated: float, complete: bool
) -> None:
    pipeline = pipeline_of(text, complete)
    spoken = [
        len(split_spoken(pipeline, played, generated, complete=complete).spoken)
        for played in sorted(times)
    ]
    assert spoken == sorted(spoken)


@given(texts, seconds, st.booleans())
def test_nothing_played_is_nothing_spoken(text: str, generated: float, complete: bool) -> None:
    pipeline = pipeline_of(text, complete)
    assert split_spoken(pipeline, 0.0, generated, complete=complete) == ("", text)


@given(texts, st.floats(0.01, 60), st.floats(0, 5))
def test_all_played_of_a_complete_generation_is_all_spoken(
    text: str, generated: float, more: float
) -> None:
    pipeline = pipeline_of(text)
    assert split_spoken(pipeline, generated + more, generated, complete=True) == (text, "")


@given(st.lists(st.sampled_from(["Hello", "there", "**you**", "all."]), min_size=1), seconds)
def test_the_cut_is_at_the_end_of_a_word(words: list[str], played: float) -> None:
    text = " ".join(words)
    for complete in (True, False):
        spoken, remaining = split_spoken(pipeline_of(text), played, 20.0, complete=complete)
        assert not spoken or not remaining or (remaining[0] == " " and spoken[-1] != " ")


@given(texts, seconds)
def test_no_surrogate_pair_and_no_accent_is_cut_off(text: str, played: float) -> None:
    remaining = split_spoken(pipeline_of(text), played, 10.0, complete=True).remaining
    spoken = text[: len(text) - len(remaining)]
    assert not (spoken[-1:] == "\ud83d" and remaining[:1] == "\ude00")
    assert not (spoken and remaining.startswith("\u0301"))


def test_of_a_complete_generation_the_share_played_is_spoken() -> None:
    text = "one two six ten one two six ten one two six ten one two six ten one two six ten"
    pipeline = pipeline_of(text)
    for share in (0.25, 0.5, 0.75):
        spoken = split_spoken(pipeline, 10 * share, 10.0, complete=True).spoken
        assert abs(len(spoken) / len(text) - share) < 0.06


def test_chinese_is_cut_between_characters() -> None:
    text = "我是一个特别善于观察别人情绪的人"
    spoken = split_spoken(pipeline_of(text), 5.0, 10.0, complete=True).spoken
    assert spoken == text[:8]


def test_while_it_is_generated_a_usual_rate_is_assumed() -> None:
    english = "She said she would be here by noon, and we could not believe it at all. " * 3
    spoken = split_spoken(pipeline_of(english, finished=False), 3.0, 4.0).spoken
    assert 30 <= len(spoken) <= 60  # ten to twenty characters a second
    chinese = "我是一个特别善于观察别人情绪的人" * 4
    spoken = split_spoken(pipeline_of(chinese, finished=False), 3.0, 4.0).spoken
    assert 10 <= len(spoken) <= 18  # three and a half to six syllables


def test_japanese_ideographs_take_longer() -> None:
    text = "東京都立大学図書館特別展示"
    chinese = split_spoken(pipeline_of(text), 1.5, 9.0, language="Chinese").spoken
    japanese = split_spoken(pipeline_of(text), 1.5, 9.0, language="Japanese").spoken
    assert len(japanese) < len(chinese)
    mixed = split_spoken(pipeline_of(text + "です"), 1.5, 9.0).spoken
    assert mixed == japanese


def test_what_was_not_generated_was_not_heard() -> None:
    text = "She said she would be here by noon. " * 5
    pipeline = pipeline_of(text, finished=False)
    assert split_spoken(pipeline, 30.0, 1.0) == split_spoken(pipeline, 1.0, 1.0)


def test_text_that_the_model_was_not_given_was_not_heard() -> None:
    pipeline = pipeline_of("She said", finished=False)  # the last word is still open
    assert split_spoken(pipeline, 30.0, 30.0) == ("She", " said")
    pipeline = pipeline_of("She said [so", finished=False)  # the filter holds the bracket
    assert split_spoken(pipeline, 30.0, 30.0).remaining.endswith("[so")


@pytest.mark.parametrize(
    ("text", "played", "spoken"),
    [
        ("**Hello** there, my friend", 0.6, "**Hello**"),
        ("[Hello](https://example.com) there, my friend", 0.6, "[Hello](https://example.com)"),
        ("# Hello there, my dear friend", 0.6, "# Hello"),
        ("Hello, there, my dear friend", 0.6, "Hello,"),
    ],
)
def test_marks_that_close_a_spoken_word_are_spoken(text: str, played: float, spoken: str) -> None:
    assert split_spoken(pipeline_of(text), played, 9.0).spoken == spoken


@pytest.mark.parametrize("mark", ["$", "*", "("])
def test_a_mark_that_waits_for_what_it_opens_is_not_spoken(mark: str) -> None:
    """A model calls a tool between the sign and the sum."""
    pipeline = pipeline_of(f"It comes to {mark}", finished=False)
    assert split_at(pipeline, len(pipeline.spoken)) == ("It comes to ", mark)
