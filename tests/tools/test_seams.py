"""The seam experiment: what a prefill holds, where errors are, and how pitch is measured."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import isnan

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from realtime_tts import demo_voice
from realtime_tts.engine.interface import UtteranceSpec
from realtime_tts.engine.torch_engine import TorchEngine
from realtime_tts.model import PromptBuilder, PromptSpec, SpeechModel, load_model
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.engine.speaking import Utterance, speak
from tools.demo_voice.recognise import Recogniser, Recording, TimedWord
from tools.demo_voice.words import word_errors
from tools.seams.hearing import place
from tools.seams.layout import Layout, Piece
from tools.seams.served import Spoken, errors_inside, parts_of
from tools.seams.speaker import Request, Speaker
from tools.seams.texts import cut, pieced_texts
from tools.seams.tracks import Tracks
from tools.seams.ways import WAYS
from tts_scheduler import Layout as TextLayout

AVA = PromptSpec(speaker="ava", language="english")
RATE = 8_000  # at which pitch is measured: another would need scipy
OLD, NEW = [11, 12], [21, 22, 23]


@cache
def parts() -> tuple[SpeechModel, Qwen2Tokenizer]:
    torch.set_num_threads(1)
    return load_model(demo_voice.FOLDER), Qwen2Tokenizer.from_folder(demo_voice.FOLDER)


def prompts() -> PromptBuilder:
    model, tokenizer = parts()
    return model.prompt_builder(tokenizer.encode)


def earlier(frames: int) -> Piece:
    codes = [torch.full((16,), number) for number in range(frames)]
    return Piece(OLD, codes, over=True, ended=True, heard=frames)


def codec_channel(codes: list[Tensor]) -> Tensor:
    """Vectors [n + 1, H] of codec bos and frames, one code after another."""
    model = parts()[0]
    rows, tables = [prompts().bos[0]], model.predictor.embedding.split(model.predictor.config.vocab)
    for frame in codes:
        total = model.talker.codec([int(frame[0])])[0]
        for table, code in zip(tables, frame[1:].tolist(), strict=True):
            total = total + table[code]
        rows.append(total)
    return torch.stack(rows)


@pytest.mark.parametrize(
    ("way", "text", "rest"),
    [
        ("as fed", [11, 12, "end", "pad", "pad", 21], [22, 23, "end"]),
        ("not closed", [11, 12, "pad", "pad", "pad", 21], [22, 23, "end"]),
        ("rewritten", [11, 12, 21, 22, 23, "end"], []),
    ],
)
def test_text_lies_over_old_frames_as_the_way_says(
    way: str, text: list[int | str], rest: list[int | str]
) -> None:
    layout, piece = Layout(parts()[0], prompts()), earlier(5)
    control = {"end": layout.end, "pad": layout.pad}

    def ids(names: list[int | str]) -> list[int]:
        return [control[name] if isinstance(name, str) else name for name in names]

    found = layout.opening(AVA, NEW, [piece], WAYS[way])
    below = codec_channel(piece.codes)
    wanted = torch.cat((prompts().prefix(AVA), prompts().text(ids(text)) + below))
    torch.testing.assert_close(found.inputs, wanted, atol=1e-4, rtol=1e-4)
    assert found.text == ids(rest)


def test_in_the_full_layout_old_and_new_text_come_before_the_old_frames() -> None:
    layout, piece = Layout(parts()[0], prompts()), earlier(3)
    found = layout.opening(AVA, NEW, [piece], WAYS["full, rewritten"])
    text = prompts().text([*OLD, *NEW, layout.end]) + prompts().pad
    spoken = codec_channel(piece.codes) + prompts().tts_pad
    wanted = torch.cat((prompts().prefix(AVA), text, spoken))
    torch.testing.assert_close(found.inputs, wanted, atol=1e-4, rtol=1e-4)
    assert found.text == []


def test_what_is_trimmed_is_not_shown() -> None:
    layout, piece = Layout(parts()[0], prompts()), earlier(5)
    piece.heard = 3
    short = layout.opening(AVA, NEW, [earlier(3)], WAYS["rewritten"])
    trimmed = layout.opening(AVA, NEW, [piece], WAYS["rewritten, trimmed"])
    torch.testing.assert_close(trimmed.inputs, short.inputs, atol=0, rtol=0)
    assert trimmed.text == short.text


def test_a_row_says_the_same_alone_and_in_company() -> None:
    speaker = Speaker(*parts(), slots=2)
    one = Request(("Wet paint!", " Mind the gap!"), "ray", 3, WAYS["rewritten"])
    other = Request(("Low tide.", " Who moved my ladder?"), "ava", 4, WAYS["full, rewritten"])
    alone = speaker.speak([one])[0]
    together = speaker.speak([other, one, other])
    assert np.array_equal(together[1].samples, alone.samples)
    assert np.array_equal(together[0].samples, together[2].samples)
    assert len(alone.ends) == 2 and alone.ends[-1] == len(alone.samples)


@pytest.mark.parametrize(("way", "layout"), [("new", "streaming"), ("full, new", "full_text")])
def test_new_pieces_are_what_the_engine_says_for_an_utterance_each(way: str, layout: str) -> None:
    model, tokenizer = parts()
    apart = replace(WAYS[way], codec_carried=False)
    spoken = Speaker(model, tokenizer, slots=1).speak(
        [Request(("Wet paint!", " Mind the gap!"), "ray", 7, apart)]
    )[0]
    engine = TorchEngine(model, tokenizer, name="demo", slots=2)
    said = [
        Utterance(
            text,
            slot,
            tokenizer.encode(text),
            UtteranceSpec(
                voice="ray",
                language="english",
                seed=7 + slot,
                sampling=engine.info.default_sampling,
            ),
            TextLayout(layout),
        )
        for slot, text in enumerate(("Wet paint!", "Mind the gap!"))
    ]
    speak(engine, said, steps=200)
    assert [each.end for each in said] == ["complete", "complete"]
    assert np.array_equal(spoken.samples, np.concatenate([each.sound for each in said]))


def test_words_are_heard_in_the_piece_that_says_them_and_no_others() -> None:
    for name in ("pocketsphinx", "scipy"):
        pytest.importorskip(name, reason=f"{name} comes with the demo-voice extra")
    request = Request(("The old bridge was closed", " after the storm."), "ray", 1, WAYS["new"])
    spoken = Speaker(*parts(), slots=1).speak([request])[0]
    known = {"the", "old", "bridge", "was", "closed", "after", "storm"}
    heard = Recogniser(known).timed_words(Recording(spoken.samples, 24_000))
    assert [each.word for each in heard] == "the old bridge was closed after the storm".split()
    seam = spoken.ends[0] / 24_000
    assert heard[4].end <= seam + 0.05 and seam - 0.05 <= heard[5].begin
    without = Recogniser(known - {"storm"}).timed_words(Recording(spoken.samples, 24_000))
    assert "storm" not in [each.word for each in without]


WORDS = st.lists(st.sampled_from(["back", "yard", "backyard", "the", "a", "dog"]), max_size=7)


@given(WORDS, WORDS)
def test_placed_errors_are_those_of_the_word_error_rate(
    wanted: list[str], found: list[str]
) -> None:
    heard = [TimedWord(word, float(at), at + 0.5) for at, word in enumerate(found)]
    placed = place(" ".join(wanted), heard)
    expected = word_errors(" ".join(wanted), " ".join(found))
    assert sum(word.errors for word in placed) == expected.errors
    assert [word.index for word in placed if word.index is not None] == list(range(len(wanted)))


def test_an_error_is_where_the_wrong_word_was_heard() -> None:
    heard = [TimedWord("one", 0.0, 0.4), TimedWord("tree", 2.0, 2.4), TimedWord("four", 3.0, 3.4)]
    placed = place("one two three four", heard)
    wrong = [(word.index, word.seconds) for word in placed if word.errors]
    assert wrong == [(1, pytest.approx(0.2)), (2, pytest.approx(2.2))]


@pytest.mark.parametrize("hertz", [70.0, 110.0, 225.0, 350.0])
def test_pitch_of_a_buzz_is_its_frequency(hertz: float) -> None:
    times = np.arange(RATE) / RATE
    buzz = sum(np.sin(2 * np.pi * hertz * over * times) / over for over in range(1, 9))
    tracks = Tracks.of(Recording(0.2 * np.asarray(buzz), RATE))
    middle = tracks.pitch[10:-10]
    assert not np.isnan(middle).any()
    assert np.median(middle) == pytest.approx(12 * np.log2(hertz / 100), abs=0.1)


def test_noise_and_silence_have_no_pitch() -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, RATE)
    tracks = Tracks.of(Recording(np.concatenate((noise, np.zeros(RATE))), RATE))
    assert np.isnan(tracks.pitch).mean() > 0.95
    assert tracks.silent[-90:].all() and not tracks.silent[5:95].any()
    assert all(isnan(value) for value in tracks.pitch[-90:])


def test_a_part_of_a_long_turn_has_its_words_and_a_few_seconds_more() -> None:
    pieces = ["Yes.", *[" No."] * 24]
    sound = Recording(np.arange(50 * RATE), RATE)
    told = [(piece, 2.0 * (number + 1)) for number, piece in enumerate(pieces)]
    parts = parts_of(pieces, Spoken("complete", told, sound))
    assert [text for text, _ in parts] == ["Yes." + " No." * 9, " No." * 10, " No." * 5]
    spans = [(part.samples[0] / RATE, part.samples[-1] / RATE) for _, part in parts]
    assert spans == [pytest.approx(span, abs=0.01) for span in [(0, 24), (16, 44), (36, 50)]]


@pytest.mark.parametrize(
    ("heard", "errors"),
    [
        ("the back yard is green", 0),
        ("what he said the backyard is green and so on", 0),
        ("what he said the backyard was green and so on", 1),
        ("he said the backyard green and", 1),
        ("said the big backyard is green", 1),
        ("", 4),
    ],
)
def test_words_before_and_behind_a_part_are_no_errors(heard: str, errors: int) -> None:
    found = errors_inside("The backyard is green.", heard)
    assert (found.words, found.errors) == (4, errors)


def test_pieces_are_their_text_and_no_text_is_used_twice() -> None:
    texts = pieced_texts()
    assert len(texts) == 60 and len({text.text for text in texts}) == 60
    assert cut("The old bridge was closed") == ("The old", " bridge was closed")
    assert all("  " not in text.text and text.text[0].isupper() for text in texts)
