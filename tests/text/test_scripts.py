"""Text in a script that the voice cannot speak is left out and named."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.text.languages import language_for
from realtime_tts.text.pipeline import TextPipeline
from realtime_tts.text.scripts import SCRIPTS, ScriptGuard
from realtime_tts.text.spans import Piece
from tests.text.test_nothing_is_dropped import TOKENIZER

RELEASED = (
    "english german spanish chinese japanese french korean russian italian portuguese".split()
)
RELEASED += ["auto", "beijing_dialect", "sichuan_dialect"]
UNICODE_NAMES = {"Chinese": "CJK", "Odia": "ORIYA", "Burmese": "MYANMAR"}
OTHER_NAMES = {"Kana": ("HIRAGANA", "KATAKANA", "HALFWIDTH"), "Greek": ("GREEK", "COPTIC")}
OTHER_NAMES |= {"Hangul": ("HANGUL", "HALFWIDTH"), "Chinese": ("CJK", "BOPOMOFO")}


def spoken(parts: list[str], languages: list[str]) -> TextPipeline:
    pipeline = TextPipeline(TOKENIZER, language=language_for("en"), languages=languages)
    for part in parts:
        pipeline.feed(part, 0.0)
    pipeline.finish(0.0)
    return pipeline


@pytest.mark.parametrize(
    ("text", "said", "scripts"),
    [
        ("Hello Привет there.", "Hello there.", ["Cyrillic"]),
        ("Привет, мир!", ", !", ["Cyrillic"]),
        ("你好 means hello.", "means hello.", ["Chinese"]),
        ("Say こんにちは or 안녕.", "Say or .", ["Kana", "Hangul"]),
        ("A café in Zürich, naïve.", "A café in Zürich, naïve.", []),
        ("It is 5 µm, π and 20 °C.", "It is five micrometers, pi and twenty degrees Celsius.", []),
        ("Ask α or β.", "Ask or .", ["Greek"]),
        ("Lμm, 2θr, kΩ, Δt: αβm, ΔG α", "Lμm, two θr, kΩ, Δt: m, ΔG ", ["Greek"]),
        ("مرحبا and नमस्ते and สวัสดี", "and and ", ["Arabic", "Devanagari", "Thai"]),
    ],
)
def test_an_english_voice_leaves_out_other_scripts(
    text: str, said: str, scripts: list[str]
) -> None:
    pipeline = spoken([text], ["auto", "english"])
    assert pipeline.spoken == said
    assert pipeline.left_out == scripts


def test_the_released_checkpoints_speak_their_scripts() -> None:
    pipeline = spoken(["Hello Привет 你好 こんにちは 안녕 ไทย"], RELEASED)
    assert pipeline.spoken == "Hello Привет 你好 こんにちは 안녕 "
    assert pipeline.left_out == ["Thai"]


def test_a_micrometre_stays_one_in_languages_whose_numbers_are_not_read() -> None:
    pipeline = TextPipeline(TOKENIZER, languages=RELEASED)
    for part in ("Толщина 5 μ", "m, 10 k", "Ω и 角α、π", "は"):
        pipeline.feed(part, 0.0)
    pipeline.finish(0.0)
    assert pipeline.spoken == "Толщина 5 μm, 10 kΩ и 角α、πは"


@pytest.mark.parametrize("languages", [[], ["auto"], ["english", "klingon"]])
def test_where_a_language_is_unknown_nothing_is_left_out(languages: list[str]) -> None:
    pipeline = spoken(["Hello Привет"], languages)
    assert pipeline.spoken == "Hello Привет" and pipeline.left_out == []


@given(
    st.lists(
        st.sampled_from(["a", " ", "Я", "я", "你", ", ", "é", "5", ".", "π", "μ"]), max_size=12
    )
)
def test_any_split_leaves_out_the_same(parts: list[str]) -> None:
    whole, pieces = spoken(["".join(parts)], ["english"]), spoken(parts, ["english"])
    assert pieces.spoken == whole.spoken and pieces.left_out == whole.left_out
    for count in range(len(whole.spoken) + 1):
        assert pieces.source_offset(count) == whole.source_offset(count)


def test_a_script_is_what_the_unicode_database_names_so() -> None:
    guard, found = ScriptGuard(["english"]), set()
    for char in map(chr, range(0x370, 0x20100)):
        if char.isalpha() and not guard.pass_on([Piece(char, 0, 1)]):
            (name,) = guard.left_out
            found.add(name)
            names = OTHER_NAMES.get(name, (UNICODE_NAMES.get(name, name.upper()),))
            assert any(other in unicodedata.name(char) for other in names), hex(ord(char))
        guard.left_out.clear()
    assert found == set(SCRIPTS)
