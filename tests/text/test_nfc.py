"""Normalisation in pieces equals normalisation of the whole, for the library's Unicode version."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import normalizers

from realtime_tts.text.nfc import NfcBuffer, first_bytes, is_boundary, is_inert, nfc
from realtime_tts.text.pretokens import char_class

# Starters that compose or do not, marks of several classes, marks of class 0, both kinds of
# Hangul, singletons, excluded composites, marks that decompose.
REACTIVE = (
    "aeqøéấ.<= 5你か가각각กकেশ"
    "\u0301\u0323\u0338\u0327\u0302\u0344\u0f73\u0f71\u3099\u093c\u09be\u0e48\u0e38\u0e31\u20d2"
    "\u212b\u2126\u0958\u1112\u1175\u11c2\u302e\U0001d15e"
)
MARKS = (0x301, 0x338, 0x3099, 0x93C, 0x11A8, 0x1161, 0x327)
texts = st.lists(
    st.one_of(st.sampled_from(REACTIVE), st.characters(exclude_categories=["Cs"])), max_size=30
).map("".join)


@pytest.fixture(scope="module")
def decompositions() -> dict[str, str]:
    """Every character that the library decomposes canonically."""
    decompose = normalizers.NFD().normalize_str
    characters = (chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    return {char: parts for char in characters if (parts := decompose(char)) != char}


@given(texts, st.data())
def test_any_split_gives_the_normal_form_of_the_whole(text: str, data: st.DataObject) -> None:
    buffer = NfcBuffer()
    whole, done, released = nfc(text), 0, ""
    while done < len(text):
        size = data.draw(st.integers(1, 4))
        released += buffer.feed(text[done : done + size])
        done += size
        assert whole.startswith(released)
    assert released + buffer.flush() == whole


@given(texts.filter(bool), st.lists(st.sampled_from(REACTIVE), max_size=3))
def test_what_is_released_stays_whatever_follows(text: str, more: list[str]) -> None:
    buffer = NfcBuffer()
    released = buffer.feed(text)
    assert nfc(text + "".join(more)).startswith(released)


def test_halves_of_every_composite_wait_for_each_other(decompositions: dict[str, str]) -> None:
    composites = {char: parts for char, parts in decompositions.items() if nfc(parts) == char}
    assert len(composites) > 12_000  # Hangul syllables alone are 11,172
    for char, parts in composites.items():
        first, second = nfc(parts[:-1]), parts[-1]
        assert not is_inert(first[-1]), f"{char!r} can come of {first!r}"
        assert not is_boundary(second), f"{char!r} can come of {second!r}"
        if is_boundary(parts[0]):
            assert char.encode()[0] in first_bytes(parts[0]) & first_bytes(first), repr(char)


def test_composition_keeps_the_class_of_characters(decompositions: dict[str, str]) -> None:
    for char, parts in decompositions.items():
        if unicodedata.combining(parts[0]) == 0:
            assert char_class(nfc(parts)[0]) is char_class(parts[0]), repr(char)


def test_characters_that_decompose_into_marks_first_are_no_boundary(
    decompositions: dict[str, str],
) -> None:
    for char, parts in decompositions.items():
        if unicodedata.combining(parts[0]):
            assert not is_boundary(char), repr(char)


@pytest.mark.parametrize(
    "text", ["你好", "5", "...", "q", "ก", "각", "🙂", " ", "\n", "é ", "가나다."]
)
def test_text_that_nothing_can_change_is_released_at_once(text: str) -> None:
    assert NfcBuffer().feed(text) == text


@pytest.mark.parametrize("text", ["e", "é", "か", "가", "<", "e\u0323", "न", "ᄀ"])
def test_text_that_a_mark_can_change_is_held(text: str) -> None:
    buffer = NfcBuffer()
    assert buffer.feed(text) == ""
    changes = (nfc(text + chr(mark)) for mark in MARKS)
    assert any(not changed.startswith(nfc(text)) for changed in changes)
    assert buffer.flush() == nfc(text)


def test_marks_after_a_settled_letter_do_not_hold_the_letter() -> None:
    buffer = NfcBuffer()
    assert buffer.feed("ก") == "ก"
    assert buffer.feed("\u0e48") == ""  # U+0E38 would move in front of it
    assert buffer.feed("\u0e38") == ""
    assert buffer.feed("ร") == nfc("\u0e48\u0e38ร") == "\u0e38\u0e48ร"
