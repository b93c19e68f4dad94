"""The languages of checkpoints, by name and by code."""

from __future__ import annotations

import pytest

from realtime_tts.languages import AUTO, known_as, language_name


@pytest.mark.parametrize("asked", ["english", "English", "en", "EN", "en-GB", "en_US"])
def test_a_language_has_one_name_however_it_is_asked_for(asked: str) -> None:
    assert known_as(asked) == "english"


def test_mandarin_is_chinese_and_dialects_are_themselves() -> None:
    assert known_as("zh-Hant-TW") == known_as("cmn") == "chinese"
    assert known_as("Beijing_Dialect") == "beijing_dialect"


@pytest.mark.parametrize("asked", [None, "", "auto", "Auto"])
def test_without_a_language_the_text_decides(asked: str | None) -> None:
    assert known_as(asked) == AUTO


def test_an_unknown_language_keeps_its_name_and_an_unknown_code_has_none() -> None:
    assert known_as("Klingon") == "klingon"
    assert language_name("tlh") is None
