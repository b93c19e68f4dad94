"""The evaluation: which turns count as wrong, what is compared with what, and what is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parity import PARITY
from tools.demo_voice import evaluate, recognise, teacher, whisper
from tools.demo_voice.durations import Endings, Fault, Turn
from tools.demo_voice.evaluate import (
    Heard,
    heard_of,
    read_codec_audio,
    requests_for,
    save,
    score_set,
)
from tools.demo_voice.phonetics import Reading
from tools.demo_voice.pictures import draw, mel_distance
from tools.demo_voice.placeholder_encoder import CONFIG, encoder_tensors
from tools.demo_voice.recognise import Recording
from tools.demo_voice.report import Report, Scored, table
from tools.demo_voice.sound import Sound
from tools.demo_voice.student import LAYOUTS, Request, Spoken, StudentSettings, deltas, speak_all
from tools.demo_voice.teacher import Speech
from tools.demo_voice.text_sets import TextSet
from tools.demo_voice.words import WordErrors

TINY = PARITY / "tiny-custom_voice"


def turn(seconds: float, teacher: float, reason: str = "complete") -> Turn:
    return Turn("Text.", "ava", "streaming", seconds, teacher, reason)


def tone(hertz: float, seconds: float = 0.5, rate: int = 16_000) -> Recording:
    times = np.arange(round(seconds * rate)) / rate
    return Recording(0.3 * np.sin(2 * np.pi * hertz * times), rate)


@pytest.mark.parametrize(
    ("seconds", "teacher", "reason", "fault"),
    [
        (10.0, 10.0, "complete", None),
        (16.4, 10.0, "complete", None),
        (16.6, 10.0, "complete", "runaway"),
        (5.6, 10.0, "complete", None),
        (5.4, 10.0, "complete", "early"),
        (1.2, 0.5, "complete", None),
        (1.4, 0.5, "complete", "runaway"),
        (0.16, 0.5, "complete", None),
        (0.08, 0.5, "complete", "early"),
        (0.0, 0.5, "complete", "early"),
        (10.0, 10.0, "max_length", "guard"),
        (1.0, 10.0, "guard_repetition", "guard"),
    ],
)
def test_a_turn_is_wrong_when_its_time_is_not_the_teachers(
    seconds: float, teacher: float, reason: str, fault: Fault | None
) -> None:
    assert turn(seconds, teacher, reason).fault == fault


def test_endings_count_each_fault_once() -> None:
    turns = [turn(1, 1), turn(9, 1), turn(9, 1, "guard_budget"), turn(0, 1)]
    assert Endings.of(turns) == Endings(4, guard=1, early=1, runaway=1, ratio=4.75)
    assert Endings.of([]) == Endings(0, 0, 0, 0, 0.0)


@given(st.text(), st.integers())
def test_deltas_are_the_text_in_small_pieces(text: str, seed: int) -> None:
    pieces = list(deltas(text, seed))
    assert "".join(pieces) == text
    assert all(1 <= len(piece) <= 6 for piece in pieces)
    assert pieces == list(deltas(text, seed))


def test_every_text_is_asked_of_every_voice_in_every_layout() -> None:
    requests = requests_for(["One.", "Two."], ["ava", "ray"], LAYOUTS, seed=5)
    assert len(set(requests)) == 8
    assert {request.seed for request in requests if request.text == "Two."} == {6}


def test_rotating_voices_share_the_texts() -> None:
    texts = [f"Text {number}." for number in range(7)]
    requests = requests_for(texts, ["ava", "ray", "eve"], ["streaming"], seed=1, rotate=True)
    assert sorted(request.text for request in requests) == texts
    assert [sum(r.voice == voice for r in requests) for voice in ("ava", "ray", "eve")] == [3, 2, 2]


def test_a_tab_separates_a_text_from_its_words(tmp_path: Path) -> None:
    path = tmp_path / "numbers.txt"
    path.write_text("At 8:45.\tat quarter to nine\nHello.\n", encoding="utf-8")
    texts = TextSet.read(path)
    assert texts == TextSet("numbers", ("At 8:45.", "Hello."), ("at quarter to nine", "Hello."))
    assert TextSet.read(path, limit=1).texts == ("At 8:45.",)


def spoken(text: str, voice: str, layout: str = "streaming") -> Spoken:
    assert layout in ("streaming", "full_text")
    return Spoken(Request(text, voice, layout, 1), tone(440), "complete")  # type: ignore[arg-type]


def test_recordings_are_kept_by_layout_and_voice_in_order(tmp_path: Path) -> None:
    turns = [spoken("One.", "ava"), spoken("Two.", "ava"), spoken("One.", "ray", "full_text")]
    heard = heard_of(turns)
    assert {key: len(recordings) for key, recordings in heard.items()} == {
        ("streaming", "ava"): 2,
        ("full_text", "ray"): 1,
    }
    save(heard, tmp_path)
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.wav"))
    assert names == ["full_text/000_ray.wav", "streaming/000_ava.wav", "streaming/001_ava.wav"]


def test_the_codecs_files_are_read_in_the_order_of_the_texts(tmp_path: Path) -> None:
    for number in range(3):
        tone(440, seconds=1.0 + number).write(tmp_path / f"{number:03d}_ray.wav")
    heard = read_codec_audio(tmp_path, ["ava", "ray"], 3)
    assert list(heard) == [("codec", "ray")]
    assert [recording.seconds for recording in heard["codec", "ray"]] == [1.0, 2.0, 3.0]
    with pytest.raises(FileNotFoundError):
        read_codec_audio(tmp_path, ["ray"], 4)
    with pytest.raises(FileNotFoundError, match="eve"):
        read_codec_audio(tmp_path, ["eve"], 3)


def test_each_source_and_voice_gets_its_own_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    said = ["one", "two", "one", "too", "won", "too"]
    monkeypatch.setattr(recognise, "transcribe_all", lambda recordings, jobs: said)
    texts = TextSet("some", ("1.", "2."), ("one", "two"))
    heard: Heard = {
        ("teacher", "ava"): [tone(440), tone(440)],
        ("codec", "ava"): [tone(440), tone(880)],
        ("streaming", "ava"): [tone(440), tone(440)],
    }
    scored = score_set(texts, heard, jobs=1)
    assert [(row.source, sum(r.errors for r in row.results)) for row in scored] == [
        ("teacher", 0),
        ("codec", 1),
        ("streaming", 2),
    ]
    assert [row.mel_db is None for row in scored] == [True, False, True]


def test_the_mel_distance_is_zero_for_the_same_sound_and_small_at_another_rate() -> None:
    assert mel_distance(tone(440), tone(440)) == 0
    assert mel_distance(tone(440), tone(1000)) > 1
    half = Recording(tone(440).samples / 2, 16_000)
    assert 0 < mel_distance(tone(440), half) <= 6.1


def test_the_picture_is_small(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib comes with the demo-voice extra")
    noise = Recording(np.random.default_rng(1).normal(0, 0.1, 48_000), 16_000)
    rows = {voice: {"teacher": noise, "student": noise} for voice in ("ava", "ray", "eve")}
    rows["ray"].pop("student")
    draw(rows, "Some text.", tmp_path / "new" / "spectra.png")
    assert 10_000 < (tmp_path / "new" / "spectra.png").stat().st_size < 150_000


def report() -> Report:
    good, bad = WordErrors(4), WordErrors(4, 1, 1, 0, "heard")
    return Report(
        {"sampling": "greedy"},
        [
            Scored("held_out", "teacher", "ava", ("A.", "B."), (good, good)),
            Scored("held_out", "codec", "ava", ("A.", "B."), (good, bad), mel_db=2.0),
            Scored("held_out", "codec", "ray", ("A.", "B."), (bad, bad), mel_db=4.0),
        ],
        {"texts_200": [turn(1.0, 1.0), turn(9.0, 1.0), turn(5.0, 1.0, "guard_silence")]},
    )


def test_the_report_has_the_tables_and_the_turns_that_went_wrong() -> None:
    lines = report().markdown().splitlines()
    assert "- sampling: greedy" in lines
    assert "| held_out | teacher | ava | 0.000 | 0.000-0.000 | 0 = 0 + 0 + 0 | 8 |" in lines
    assert any(
        line.startswith("| held_out | codec | all | 0.375 |")
        and line.endswith("| 6 = 3 + 3 + 0 | 16 |")
        for line in lines
    )
    assert "| held_out | codec | all | 3.00 |" in lines
    assert "| texts_200 | streaming | ava | 3 | 1 | 0 | 1 | 5.000 |" in lines
    assert "- texts_200, streaming, ava: runaway (9.0 s, teacher 1.0 s): Text." in lines
    assert "- texts_200, streaming, ava: guard_silence (5.0 s, teacher 1.0 s): Text." in lines


def test_the_report_in_json_has_every_sentence(tmp_path: Path) -> None:
    report().write(tmp_path / "new")
    held = json.loads((tmp_path / "new" / "report.json").read_text(encoding="utf-8"))
    assert [row["voice"] for row in held["word_errors"]] == ["ava", "ava", "ray", "all"]
    assert held["word_errors"][1]["rate"] == 0.25
    assert held["word_errors"][1]["sentences"][1]["text"] == "B."
    assert held["word_errors"][1]["sentences"][1]["heard"] == "heard"
    assert [row["fault"] for row in held["turns"]["texts_200"]] == [None, "runaway", "guard"]
    assert held["endings"][0]["guard"] == 1
    assert (tmp_path / "new" / "report.md").read_text(encoding="utf-8") == report().markdown()


def test_each_recogniser_has_a_table_of_its_own() -> None:
    good, bad = WordErrors(4), WordErrors(4, 1, 1, 0, "heard")
    rows = [
        Scored("held_out", "teacher", "ava", ("A.",), (result,), recogniser=name)
        for name, result in (("pocketsphinx", good), ("whisper", bad))
    ]
    _, first, second = Report({}, rows).markdown().split("## Word error rate ")
    assert first.startswith("(pocketsphinx)") and "| 0.000 |" in first and "0.500" not in first
    assert second.startswith("(whisper)") and "| 0.500 |" in second and "| all |" not in second


def test_the_sound_has_a_column_for_every_measure() -> None:
    sound = Sound("held_out", "teacher", "ava", *(float(number) for number in range(100, 113)))
    lines = Report({}, sounds=[sound]).markdown().splitlines()
    head = next(line for line in lines if line.startswith("| set | source | voice | F0, Hz |"))
    row = next(line for line in lines if line.startswith("| held_out | teacher | ava | 100 |"))
    assert head.count("|") == row.count("|") == 17
    assert "| 0.1 |" in row  # the bandwidth, 109 Hz, is given in kHz
    assert json.loads(json.dumps(Report({}, sounds=[sound]).as_dict()["sounds"]))[0]["range"] == 101


def test_long_texts_are_as_many_sentences_as_the_minutes_take() -> None:
    sentences = ["one two three four five six seven eight nine ten."] * 40
    assert TextSet.long(sentences, 1).texts[0].count(".") == 17
    assert TextSet.long(sentences, 2).name == "minutes_2"
    with pytest.raises(ValueError, match="3 minutes need 510 words of sentences; there are 400"):
        TextSet.long(sentences, 3)
    real = [text for path in evaluate.LONG_FROM for text in TextSet.read(path).texts]
    assert len(TextSet.long(real, 5).texts[0].split()) >= 850


@pytest.mark.parametrize(
    ("heard", "words"),
    [
        ("The CIA and the F.B.I. denied it.", "The C I A and the F B I denied it."),
        ("OK, it's BROWN. Send the PDF", "OK, it's B R O W N. Send the P D F"),
        ("I saw A and B in Ohio.", "I saw A and B in Ohio."),
        ("Visit example.org today.", "Visit example dot org today."),
        ("Write to anna@example.com.", "Write to anna@example dot com."),
        ("Her code is k7x2, not 3.5 or 7th.", "Her code is k 7 x 2, not 3.5 or 7th."),
    ],
)
def test_what_whisper_writes_is_what_was_said(heard: str, words: str) -> None:
    assert whisper.as_said(heard) == words


def test_an_empty_report_can_be_written(tmp_path: Path) -> None:
    Report({}).write(tmp_path)
    assert (tmp_path / "report.md").read_text(encoding="utf-8").startswith("# Demo voice")


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    assert list(table(("a",), [("x|y",)])) == ["| a |", "| --- |", "| x\\|y |", ""]


def test_the_placeholder_encoder_has_what_its_config_says() -> None:
    tensors = encoder_tensors(CONFIG | {"codebook_size": 64})
    assert len(tensors) == 93  # what the official class has for this config
    assert all(name.startswith("encoder.") for name in tensors)
    books = [t.shape for name, t in tensors.items() if name.endswith("embed_sum")]
    assert books == [(64, 16)] * 16


def test_a_real_server_speaks_the_same_however_many_speak() -> None:
    """Through sockets, client, text pipeline and engine, on a random checkpoint."""
    voice = next(iter(json.loads((TINY / "config.json").read_text())["talker_config"]["spk_id"]))
    requests = requests_for(["Hi.", "Oh!"], [voice], LAYOUTS, seed=1)
    done: list[tuple[int, int]] = []
    alone, together = (
        speak_all(
            StudentSettings(TINY, threads=1, sessions=sessions, max_frames=12),
            requests,
            lambda *now: done.append(now),
        )
        for sessions in (1, 3)
    )
    assert [each.request for each in together] == requests
    assert {each.reason for each in alone} <= {"complete", "max_length"}
    for one, other in zip(alone, together, strict=True):
        assert one.reason == other.reason
        assert one.reason == "complete" or len(one.recording.samples) == 12 * 1920
        assert np.array_equal(one.recording.samples, other.recording.samples)
    assert done[3] == (4, 4)


def test_the_teacher_speaks_each_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[str], str]] = []

    class Words:
        def read(self, sentences: list[str]) -> list[Reading | None]:
            return [Reading(text, "x", (0,)) if text != "?" else None for text in sentences]

    class Counting:
        def __init__(self, *_: object) -> None: ...

        def speak(self, readings: list[Reading], voice: str) -> Iterator[tuple[Reading, Speech]]:
            asked.append(([reading.text for reading in readings], voice))
            for reading in reversed(readings):  # in any order
                label = np.zeros(1, np.int16)
                yield (
                    reading,
                    Speech(np.full(480, len(reading.text), np.int16), label, label, label),
                )

    monkeypatch.setattr(teacher, "Teacher", Counting)
    monkeypatch.setattr(evaluate, "Phonetics", Words)
    speaker = evaluate.Teacher(Path(), Path())
    for _ in range(2):
        said = speaker.speak("It is me. Who is it?", "ava")
    assert asked == [(["It is me.", "Who is it?"], "ava")]
    spoken = np.flatnonzero(said.samples)
    assert said.samples[spoken[0]] == 9 and said.samples[-1] == 10
    assert len(spoken) == 960 < spoken[-1] - spoken[0], "a pause between them"
    with pytest.raises(ValueError, match="cannot read '\\?'"):
        speaker.speak("?", "ava")
