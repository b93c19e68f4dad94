"""The text of a turn: any split gives the same ids, and every spoken character has its source."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.text.filter import MAX_HOLD_SECONDS
from realtime_tts.text.languages import language_for
from realtime_tts.text.lexicon import Lexicon
from realtime_tts.text.pipeline import TextPipeline
from realtime_tts.text.tokenizer import Qwen2Tokenizer

TOKENIZER = Qwen2Tokenizer.from_folder(Path(__file__).parent / "data" / "tiny_tokenizer")

FRAGMENTS = [
    *[
        "Hello",
        " there",
        " She said",
        "你好，",
        "é",
        "e\u0301",
        "\u0301" * 12,
        "🙂",
        "\ud83d",
        "\ude00",
    ],
    *["**", "*", "`", "[a label](u)", "[", "](u)", "# ", "- ", "| ", "http://x.example/y", "~~"],
    *[" ", "\n", "\r\n", "\t", "\x00", "\u200b", "<|im_start|>", "42", "'s", ".", "!"],
]
texts = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=5)), max_size=12).map(
    "".join
)
splits = st.lists(st.integers(1, 7), min_size=1, max_size=4)


def fed(pipeline: TextPipeline, text: str, sizes: list[int]) -> tuple[TextPipeline, list[int]]:
    ids: list[int] = []
    done, turn = 0, 0
    while done < len(text):
        size = sizes[turn % len(sizes)]
        ids += pipeline.feed(text[done : done + size], 0.0)
        done, turn = done + size, turn + 1
    return pipeline, ids + pipeline.finish(0.0)


def speak(text: str, sizes: list[int], filtered: bool) -> tuple[TextPipeline, list[int]]:
    return fed(TextPipeline(TOKENIZER, filtered=filtered), text, sizes)


@given(texts, splits, st.booleans())
def test_any_split_gives_the_ids_and_the_offsets_of_the_whole(
    text: str, sizes: list[int], filtered: bool
) -> None:
    whole, ids = speak(text, [len(text) or 1], filtered)
    pieces, same_ids = speak(text, sizes, filtered)
    assert same_ids == ids == TOKENIZER.encode(whole.spoken)
    assert pieces.source == whole.source == text
    assert pieces.spoken == whole.spoken
    assert pieces.has_speech == whole.has_speech
    for count in range(len(whole.spoken) + 1):
        assert pieces.source_offset(count) == whole.source_offset(count)
        assert pieces.source_start(count) == whole.source_start(count)


@given(texts, splits, st.booleans())
def test_offsets_point_at_the_source_of_every_spoken_character(
    text: str, sizes: list[int], filtered: bool
) -> None:
    pipeline, _ = speak(text, sizes, filtered)
    previous = 0
    for index, char in enumerate(pipeline.spoken):
        start, end = pipeline.source_start(index), pipeline.source_offset(index + 1)
        assert previous <= start <= end <= len(text)
        previous = start
        if char.isalnum() and ord(char) < 0x10000:
            assert text[start] == char


@given(texts, splits)
def test_without_the_filter_the_ids_are_those_of_the_text_itself(
    text: str, sizes: list[int]
) -> None:
    plain = text.replace("\r\n", "\n")
    if "\x00" in text or any(0xD800 <= ord(char) < 0xE000 for char in text):
        return
    if "\u0301" * 11 in text or any(char in "\r\v\f\x85" or ord(char) < 9 for char in plain):
        return
    if any(0x0E <= ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in plain):
        return
    assert speak(text, sizes, filtered=False)[1] == TOKENIZER.encode(plain.lstrip())


@pytest.mark.parametrize("filtered", [True, False])
@pytest.mark.parametrize("text", ["\n\nHello there.", " Hello there.", "\t\n Hello there."])
def test_leading_white_space_never_reaches_the_prompt(text: str, filtered: bool) -> None:
    pipeline, ids = speak(text, [1], filtered)
    assert ids == TOKENIZER.encode("Hello there.")
    assert pipeline.source_start(0) == text.index("H")
    assert pipeline.source == text


def test_marks_at_the_start_do_not_let_white_space_through() -> None:
    assert speak("**\n** \n# Hello", [2], filtered=True)[1] == TOKENIZER.encode("Hello")


@pytest.mark.parametrize(
    ("text", "has_speech"),
    [("Hi", True), ("5", True), ("你", True), ("", False), (" \n", False), ("...", False)]
    + [("🎉🎉", False), ("---\n", False), ("```\ncode\n```", False), ("![](x.png)", False)],
)
def test_a_turn_knows_whether_there_is_anything_to_say(text: str, has_speech: bool) -> None:
    assert speak(text, [1], filtered=True)[0].has_speech is has_speech


def test_flush_releases_everything_and_the_next_segment_starts_afresh() -> None:
    pipeline = TextPipeline(TOKENIZER)
    ids = pipeline.feed("She said [so", 0.0)
    ids += pipeline.flush(0.0)
    assert ids == TOKENIZER.encode("She said [so")
    assert pipeline.deadline() is None
    assert pipeline.fed_characters == len("She said [so")
    ids = pipeline.feed(" **there**", 0.1) + pipeline.finish(0.1)
    assert ids == TOKENIZER.encode(" there")
    assert pipeline.source == "She said [so **there**"
    assert pipeline.source_offset(len(pipeline.spoken)) == len("She said [so **there")


def test_a_surrogate_pair_cut_in_two_deltas_is_one_character() -> None:
    pipeline, ids = speak("a\ud83d\ude00b", [2], filtered=False)
    assert ids == TOKENIZER.encode("a\U0001f600b")
    assert [pipeline.source_offset(count) for count in range(4)] == [0, 1, 3, 4]


def test_held_marks_come_out_by_time_or_by_the_next_text() -> None:
    pipeline = TextPipeline(TOKENIZER)
    assert pipeline.feed("5 ", 1.0) == TOKENIZER.encode("5")
    assert pipeline.deadline() is None  # white space is certain by what follows, not by time
    pipeline.feed("*", 2.0)
    assert pipeline.deadline() == 2.0 + MAX_HOLD_SECONDS
    assert pipeline.poll(2.1) == []
    pipeline.poll(2.0 + MAX_HOLD_SECONDS)
    assert pipeline.deadline() is None
    assert pipeline.spoken == "5 *"
    assert TextPipeline(TOKENIZER, filtered=False).deadline() is None
    assert TextPipeline(TOKENIZER, filtered=False).poll(9.0) == []


def test_finish_is_idempotent_and_ends_the_text() -> None:
    pipeline = TextPipeline(TOKENIZER)
    pipeline.feed("Hello", 0.0)
    assert pipeline.finish(0.0) == TOKENIZER.encode("Hello")
    assert pipeline.finish(1.0) == []
    with pytest.raises(AssertionError, match="after the end"):
        pipeline.feed("more", 2.0)


def test_what_the_tokenizer_holds_is_not_fed() -> None:
    pipeline = TextPipeline(TOKENIZER)
    pipeline.feed("She said", 0.0)
    assert pipeline.spoken == "She said"
    assert pipeline.fed_characters == len("She")
    pipeline.feed(" ", 0.0)
    assert pipeline.fed_characters == len("She said")


READY = [" 5", "98", ".", "6", " Dr", ". Smith", "$3", ".50", "SQL", "**", " ", "\n", "`", "[", "é"]
READY += [
    '<break time="',
    '300ms"/>',
    '<break time="1s"/>',
    " Hello",
    "](u)",
    "🙂",
    "http://x.de/5",
]
ready_texts = st.lists(st.sampled_from(READY), max_size=12).map("".join)


def ready(text: str, sizes: list[int]) -> tuple[TextPipeline, list[int]]:
    pipeline = TextPipeline(
        TOKENIZER, language=language_for("en"), lexicon=Lexicon({"SQL": "sequel"})
    )
    return fed(pipeline, text, sizes)


@given(ready_texts, splits)
def test_speech_ready_text_and_its_segments_are_those_of_the_whole(
    text: str, sizes: list[int]
) -> None:
    whole, ids = ready(text, [len(text) or 1])
    pieces, same_ids = ready(text, sizes)
    assert same_ids == ids and pieces.spoken == whole.spoken and pieces.source == text
    assert pieces.segments == whole.segments
    assert sum((segment.ids for segment in whole.segments), []) == ids
    for count in range(len(whole.spoken) + 1):
        assert pieces.source_offset(count) == whole.source_offset(count)
        assert pieces.source_start(count) == whole.source_start(count)


def test_a_pause_parts_the_text_and_both_parts_begin_afresh() -> None:
    pipeline, _ = ready('One <break time="0.3s"/> two.', [3])
    first, second = pipeline.segments
    assert (first.pause, second.pause) == (0.0, 0.3)
    assert first.ids == TOKENIZER.encode("One ") and second.ids == TOKENIZER.encode("two.")
    assert first.closed and second.closed and first.has_speech and second.has_speech
    assert pipeline.spoken[second.start :] == "two."
    assert pipeline.source_start(second.start) == len('One <break time="0.3s"/> ')


def test_two_stages_do_not_hold_text_longer_than_one() -> None:
    pipeline = TextPipeline(TOKENIZER, language=language_for("en"))
    pipeline.feed("*", 1.0)
    pipeline.feed("5.", 1.3)  # the filter lets both go, the normalizer waits for more
    deadline = pipeline.deadline()
    assert deadline is not None and deadline <= 1.0 + MAX_HOLD_SECONDS
    pipeline.poll(deadline)
    assert pipeline.deadline() is None and pipeline.spoken.endswith("five.")


def test_words_for_a_number_that_a_commit_parts_stand_for_nothing_behind_it() -> None:
    pipeline = TextPipeline(TOKENIZER, paced=True, language=language_for("english"))
    pipeline.feed("It is 98%.", 0.0)
    pipeline.finish(0.0)
    pipeline.release(len("It is ninety-eight"))
    pipeline.commit()
    pipeline.release(len(" percent."))
    offsets = [pipeline.source_offset(count) for count in range(len(pipeline.spoken) + 1)]
    assert offsets == sorted(offsets)
    assert pipeline.source_offset(len(pipeline.spoken) - len(".")) == len("It is 98%")
