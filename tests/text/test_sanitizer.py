"""Whatever JSON can carry becomes text that can be encoded, with its place in the source."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.text.sanitizer import MAX_MARKS, Sanitizer

NASTY = "a é你🙂\n\t\r\x00\x07\x1b\x7f\x85\x9f\v\f\ud83d\ude00\udfff\ud800\u0301\u0323\u200d"
texts = st.lists(st.one_of(st.sampled_from(NASTY), st.characters()), max_size=30).map("".join)


def sanitize(text: str) -> str:
    sanitizer = Sanitizer()
    return sanitizer.feed(text) + sanitizer.flush()


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Hello\tthere\n", "Hello\tthere\n"),
        ("a\x00b\x07c\x1bd\x7fe\x9ff", "abcdef"),
        ("a\r\nb\rc\vd\fe\x85f", "a\nb\nc\nd\ne\nf"),
        ("a\r\r\n\nb", "a\n\n\nb"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ud83d", "\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\ude00x", "\ufffd\U0001f600x"),
        ("\ud83da", "\ufffda"),
        ("e" + "\u0301" * 40 + "x", "e" + "\u0301" * MAX_MARKS + "x"),
        ("e" + "\u0301" * 9 + "\x00" + "\u0301" * 9, "e" + "\u0301" * MAX_MARKS),
        ("ก\u0e38\u0e48 ཧཱུྃ", "ก\u0e38\u0e48 ཧཱུྃ"),
        ("", ""),
    ],
)
def test_text_is_made_safe(text: str, clean: str) -> None:
    assert sanitize(text) == clean


@given(texts, st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_any_split_gives_the_result_and_the_offsets_of_the_whole(
    text: str, sizes: list[int]
) -> None:
    whole, pieces = Sanitizer(), Sanitizer()
    expected = whole.feed(text) + whole.flush()
    result, done, turn = "", 0, 0
    while done < len(text):
        size = sizes[turn % len(sizes)]
        result += pieces.feed(text[done : done + size])
        done, turn = done + size, turn + 1
    assert result + pieces.flush() == expected
    for offset in range(len(expected) + 1):
        assert pieces.offsets.before(offset) == whole.offsets.before(offset)


@given(texts)
def test_the_result_encodes_has_no_controls_and_is_a_fixed_point(text: str) -> None:
    clean = sanitize(text)
    clean.encode()
    assert all(char in "\n\t" or unicodedata.category(char) != "Cc" for char in clean)
    assert sanitize(clean) == clean


@given(texts)
def test_offsets_lead_back_to_the_characters_of_the_source(text: str) -> None:
    sanitizer = Sanitizer()
    clean = sanitizer.feed(text) + sanitizer.flush()
    offsets = [sanitizer.offsets.before(index) for index in range(len(clean) + 1)]
    assert offsets == sorted(offsets)
    assert offsets[-1] == len(text)
    for index, char in enumerate(clean):
        source = text[offsets[index] : offsets[index + 1]]
        if char == "\ufffd":
            assert "\ud800" <= source[0] <= "\udfff" or source[0] == char
        elif char == "\n":
            assert source[0] in "\n\r\v\f\x85"
        elif ord(char) > 0xFFFF:
            assert source[0] == char or len(source) >= 2
        else:
            assert source[0] == char


def test_plain_text_between_floods_of_marks_starts_a_new_count() -> None:
    sanitizer = Sanitizer()
    flood = "\u0301" * MAX_MARKS
    assert sanitizer.feed(flood) + sanitizer.feed("e") + sanitizer.feed(flood) == f"{flood}e{flood}"


def test_a_carriage_return_and_its_newline_may_come_apart() -> None:
    sanitizer = Sanitizer()
    assert sanitizer.feed("a\r") + sanitizer.feed("\nb") + sanitizer.feed("\nc") == "a\nb\nc"


def test_a_flood_of_marks_costs_no_memory() -> None:
    sanitizer = Sanitizer()
    clean = "".join(sanitizer.feed("\u0301" * 100) for _ in range(50))
    assert len(clean) == MAX_MARKS
