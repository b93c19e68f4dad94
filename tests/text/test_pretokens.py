"""The state machine cuts as Qwen2's expression does, and never takes a cut back."""

from __future__ import annotations

import itertools
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from realtime_tts.text.pretokens import CharClass, PreTokenBuffer, char_class, split

# One or more of each class and of each character the expression names.
TRICKY = "aQ你é'’sſrevLm12½ \t\u00a0\u3000\n\r!.-_🙂\u0301\u200d"
texts = st.lists(
    st.one_of(st.sampled_from(TRICKY), st.characters(exclude_categories=["Cs"])), max_size=30
).map("".join)


def feed_in_pieces(text: str, size: int) -> list[str]:
    buffer = PreTokenBuffer()
    pieces: list[str] = []
    for start in range(0, len(text), size):
        pieces += buffer.feed(text[start : start + size])
    return pieces + buffer.flush()


@given(texts, st.integers(1, 5))
@example("it'Ll !!\n \r\n x", 1)
def test_any_split_gives_the_pre_tokens_of_the_whole(text: str, size: int) -> None:
    assert feed_in_pieces(text, size) == split(text)


def test_every_short_text_is_cut_as_by_the_expression() -> None:
    for letters in itertools.product("a'sre1 \t\n\r!", repeat=4):
        text = "".join(letters)
        assert feed_in_pieces(text, 1) == split(text), repr(text)
        assert feed_in_pieces(text, 4) == split(text), repr(text)


@given(st.text("abS '.\n7é", max_size=40), st.integers(1, 40))
def test_runs_of_english_words_are_cut_as_their_characters_are(text: str, size: int) -> None:
    assert feed_in_pieces(text, size) == split(text)


@given(texts)
def test_closed_pre_tokens_stay_whatever_follows(text: str) -> None:
    buffer, closed = PreTokenBuffer(), list[str]()
    for index, char in enumerate(text):
        closed += buffer.feed(char)
        for more in ("", "a", " ", "\n", "!", "'s", "\n a", " \n"):
            assert split(text[: index + 1] + more)[: len(closed)] == closed


@given(texts.filter(bool), texts.filter(bool))
def test_expecting_a_class_closes_what_such_a_character_closes(text: str, more: str) -> None:
    buffer = PreTokenBuffer()
    pieces = buffer.feed(text)
    pieces += buffer.expect(char_class(more[0]))
    pieces += buffer.expect(char_class(more[0]))
    pieces += buffer.feed(more)
    assert pieces + buffer.flush() == split(text + more)


def test_contractions_are_found_for_every_letter_that_folds_to_theirs() -> None:
    for code in range(0x10000):
        char = chr(code)
        if unicodedata.category(char).startswith("L"):
            assert feed_in_pieces(f"'{char}x", 1) == split(f"'{char}x"), hex(code)


@pytest.mark.parametrize(
    ("text", "closed", "still_open"),
    [
        ("Hello", [], "Hello"),
        ("Hello ", ["Hello"], " "),
        ("Hello w", ["Hello"], " w"),
        ("12", ["1", "2"], ""),
        ("a!", ["a"], "!"),
        ("!!a", ["!!"], "a"),
        ("it's", ["it", "'s"], ""),
        ("it'r", ["it"], "'r"),
        ("it're", ["it", "'re"], ""),
        ("!\n", [], "!\n"),
        ("!\n ", ["!\n"], " "),
        ("a\n\n b", ["a", "\n\n"], " b"),
        ("a  ", ["a"], "  "),
        ("你好，", ["你好"], "，"),
    ],
)
def test_only_what_may_still_grow_stays_open(text: str, closed: list[str], still_open: str) -> None:
    buffer = PreTokenBuffer()
    assert buffer.feed(text) == closed
    assert buffer.open == still_open


@given(st.characters(exclude_categories=["Cs", "Cn", "Co"]))
def test_classes_are_those_of_unicode(char: str) -> None:
    category = unicodedata.category(char)
    if char in "\r\n":
        expected = CharClass.NEWLINE
    elif category.startswith("L"):
        expected = CharClass.LETTER
    elif category.startswith("N"):
        expected = CharClass.NUMBER
    elif char.isspace() and char not in "\x1c\x1d\x1e\x1f":
        expected = CharClass.SPACE
    else:
        expected = CharClass.OTHER
    assert char_class(char) is expected
