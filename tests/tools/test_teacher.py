"""The teacher's speech: what is said when, how texts are joined, what the trainings read of it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from tools.demo_voice import codec_trainer, kokoro, phonetics, questions, teacher
from tools.demo_voice.letters import TERMINALS
from tools.demo_voice.listener import pitch_loss
from tools.demo_voice.phonetics import PHONES, Reading, phone_numbers, spelled_out
from tools.demo_voice.speech import Shard, joined, texts
from tools.demo_voice.teacher import LABEL_SAMPLES, Blend, Speech


@dataclass
class Token:
    """As much of misaki's as is read."""

    text: str
    phonemes: str | None
    whitespace: str = " "


def test_every_phone_knows_its_word() -> None:
    tokens = [
        Token("Two", "t\u02c8u", ""),
        Token(",", ","),
        Token("I", "\u02ccI"),
        Token("N.", "\u02c8\u025bn", ""),
    ]
    reading = phonetics._reading("Two, I N.", tokens)
    assert reading == Reading(
        "Two, I N.", "t\u02c8u, \u02ccI \u02c8\u025bn.", (0, 0, 0, -1, -1, 1, 1, -1, 2, 2, 2, -1)
    )
    assert phonetics._reading("Two", [Token("Two", None, "")]) is None
    assert phonetics._reading("...", [Token("...", "...", "")]) is None


def test_a_stress_mark_sounds_as_its_vowel_and_a_mark_is_a_pause() -> None:
    said = [PHONES[number] for number in phone_numbers("t\u02c8u \u02ccI, m")]
    assert said == ["t", "u", "u", "u", "I", "I", "pau", "pau", "m"]


def test_texts_are_read_as_the_server_gives_them_to_the_voice() -> None:
    assert spelled_out("It costs $3, see www.example.org.") == (
        "It costs three dollars, see www dot example dot org."
    )


@pytest.mark.parametrize("name", sorted(TERMINALS))
def test_letters_are_drawn_in_many_ways(name: str) -> None:
    drawn = {TERMINALS[name](random.Random(seed)) for seed in range(60)}
    assert len(drawn) >= 20 and all(text.isascii() and text.strip() == text for text in drawn)


def test_speech_is_cut_leveled_and_labelled() -> None:
    reading = Reading("a b", "\u02c8A b", (0, 0, -1, 1))
    counts = np.array([4, 1, 3, 1, 4, 3])  # in 40ths of a second, silence at both ends
    sound = np.zeros(counts.sum() * 600, np.float32)
    begin, end = 4 * 600, 13 * 600
    sound[begin:end] = 0.02 * np.sin(np.arange(end - begin) / 9)
    hertz = np.where(np.arange(32) < 16, 220.0, 5.0)
    made = teacher._labelled(sound, hertz, reading, counts)
    assert len(made.samples) % LABEL_SAMPLES == 0
    loud = np.flatnonzero(np.abs(made.samples) > 100)
    assert 200 < loud[0] < 300, "10 ms before the first sound"
    level = np.sqrt(np.square(made.samples[loud[0] : loud[-1]] / 32768).mean())
    assert level == pytest.approx(0.148, rel=0.1)
    names = [PHONES[number] for number in made.phones]
    assert names[:5] == ["A"] * 5 and "b" in names and names[-1] == "pau"
    assert made.words[0] == 0 and made.words.max() == 1 and made.words[-1] == -1
    assert made.pitch[0] == 220 and made.pitch[-1] == 0
    with pytest.raises(ValueError, match="says nothing"):
        teacher._labelled(0 * sound, hertz, reading, counts)


def speech(labels: int, words: int, level: int = 1000) -> Speech:
    return Speech(
        np.full(labels * LABEL_SAMPLES, level, np.int16),
        np.ones(labels, np.uint8),
        np.minimum(np.arange(labels), words - 1).astype(np.int16),
        np.full(labels, 110, np.float16),
    )


def test_what_it_murmurs_behind_the_last_phone_is_not_kept() -> None:
    reading = Reading("a.", "\u02c8A.", (0, 0, 0))
    counts = np.array([2, 1, 5, 8, 8])  # silence, the stress and its vowel, the full stop, silence
    sound = 0.02 * np.sin(np.arange(counts.sum() * 600) / 9).astype(np.float32)
    sound[: 2 * 600] = 0
    made = teacher._labelled(sound, np.full(48, 220.0), reading, counts)
    loud = np.flatnonzero(np.abs(made.samples) > 100)
    assert loud[-1] - loud[0] <= 6 * 600 + 960, "the vowel, and 40 ms in which it fades"
    assert not made.samples[-1_000:].any() and {PHONES[n] for n in made.phones} == {"A", "pau"}


def test_joined_sentences_count_their_words_on_and_pause() -> None:
    text, whole = joined([("A b.", speech(4, 2)), ("C!", speech(2, 1))], random.Random(1))
    assert text == "A b. C!"
    lead = int(np.flatnonzero(whole.samples)[0]) // LABEL_SAMPLES
    assert lead == 8, "two frames, in which two more tokens come"
    pause = len(whole.phones) - lead - 6
    assert 6 <= pause <= 20
    assert whole.words.tolist() == [-1] * lead + [0, 1, 1, 1] + [-1] * pause + [2, 2]
    assert len(whole.samples) == LABEL_SAMPLES * len(whole.phones)
    assert not whole.samples[(lead + 4) * LABEL_SAMPLES :][: pause * LABEL_SAMPLES].any()
    _, alone = joined([("C!", speech(2, 1))], random.Random(1))
    assert np.array_equal(alone.samples[lead * LABEL_SAMPLES :], speech(2, 1).samples)
    assert not alone.samples[: lead * LABEL_SAMPLES].any()


def test_only_what_ends_like_a_sentence_is_followed_by_another() -> None:
    spoken = [(f"One {n}" + ("." if n % 20 else ""), speech(3, 2)) for n in range(300)]
    made = list(texts(spoken, random.Random(3)))
    said = [word for text, _ in made for word in text.split() if word != "One"]
    assert sorted(int(word.rstrip(".")) for word in said) == list(range(300))
    assert any(text.count("One") > 5 for text, _ in made)
    for text, _ in made:
        assert all(part.endswith(".") for part in text.split(" One ")[:-1])


def test_a_shard_is_what_was_kept_and_the_codec_hears_silence_behind_each(tmp_path: Path) -> None:
    one, other = speech(3, 1), speech(2, 1, level=7)
    shard = Shard(
        samples=np.concatenate((one.samples, other.samples)),
        phones=np.concatenate((one.phones, other.phones)),
        words=np.concatenate((one.words, other.words)),
        pitch=np.concatenate((one.pitch, other.pitch)),
        lengths=np.array([len(one.samples), len(other.samples)], np.int32),
        voices=np.array([0, 1], np.uint8),
        texts=["One.", "Other."],
    )
    shard.save(tmp_path / "speech-00-00000.npz")
    back = Shard.load(tmp_path / "speech-00-00000.npz")
    assert back.texts == shard.texts and (back.samples == shard.samples).all()
    pool = codec_trainer.SpeechPool(tmp_path, torch.device("cpu"), hours=0.001)
    pool.refresh()
    heard = pool.samples[: pool.held].view(-1, LABEL_SAMPLES)[:, 0].tolist()
    gap = (len(heard) - 5) // 2
    assert gap >= 4 and heard == [1000] * 3 + [0] * gap + [7] * 2 + [0] * gap
    assert (
        pool.pitch[: len(heard)].tolist() == [110.0] * 3 + [0.0] * gap + [110.0] * 2 + [0.0] * gap
    )


def test_pitch_is_judged_where_it_is_known() -> None:
    hertz = torch.tensor([110.0, 0.0, -1.0])
    right = torch.tensor([[20.0, 1.0], [-20.0, 9.0], [20.0, 9.0]])
    assert pitch_loss(right, hertz) < 1e-6
    for row, column, wrong in ((0, 0, -20.0), (0, 1, 2.0), (1, 0, 20.0)):
        told = right.clone()
        told[row, column] = wrong
        assert pitch_loss(told, hertz) > 1


def test_a_blend_takes_sound_and_melody_from_different_styles(tmp_path: Path) -> None:
    for number, name in enumerate(("a", "b", "c")):
        np.full((510, 256), number, np.float32).tofile(tmp_path / f"{name}.bin")
    styles = teacher._blend(tmp_path, Blend({"a": 1.0, "c": 3.0}, {"b": 1.0}))
    assert styles.shape == (510, 256)
    assert (styles[:, :128] == 1.5).all() and (styles[:, 128:] == 1).all()
    with pytest.raises(FileNotFoundError, match="d.bin is missing"):
        teacher._blend(tmp_path, Blend({"d": 1.0}, {"b": 1.0}))


def test_an_exports_operations_are_found_in_the_network() -> None:
    found = {
        "/decoder/decoder/asr_res/asr_res.0/Conv_quant": "decoder.asr_res.0",
        "/encoder/F0.1/pool/ConvTranspose": "predictor.F0.1.pool",
        "/encoder/text_encoder/cnn.2/cnn.2.0/Conv_quant": "text_encoder.cnn.2.0",
        "/encoder/bert/encoder/layer/ffn_3/MatMul_quant": "bert.encoder.layer.ffn_3",
    }
    assert {node: kokoro._module(node) for node in found} == found


def test_an_exports_gates_come_in_torchs_order() -> None:
    torch.manual_seed(2)
    lstm = torch.nn.LSTM(3, 2)
    own = dict(lstm.named_parameters())["weight_ih_l0"].detach().numpy()
    i, f, c, o = own.reshape(4, 2, 3)
    assert (kokoro._gates(np.concatenate((i, o, f, c))) == own).all()


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("They sold the old piano?", True),
        ('So is that "it"?', True),
        ("Would you like a window seat?", True),
        ("They sold the old piano.", False),
        ("And where did they sell it?", False),
        ("Tea or coffee?", False),
    ],
)
def test_questions_that_ask_for_yes_or_no_rise(text: str, asks: bool) -> None:
    assert questions.rises(text) is asks


def test_a_rise_begins_with_the_last_stressed_vowel() -> None:
    assert questions.nucleus("ðə \u02c8Old pi\u02c8ænO?") == 11
    assert questions.nucleus("mmm?") == 0


def test_pitch_rises_to_its_end_and_silence_stays_silent() -> None:
    pitch = torch.full((100,), 200.0)
    pitch[40:45] = pitch[91:] = 0.0
    risen = questions.raised(pitch, 30, 30.0)
    assert torch.equal(risen[:30], pitch[:30])
    assert not risen[40:45].any() and not risen[91:].any()
    assert (risen[45:91].diff() > 0).all()
    assert risen[90] == pytest.approx(200 * 2 ** (7 / 12))
    for silent in (torch.zeros(9), torch.tensor([200.0, 0.0])):
        assert torch.equal(questions.raised(silent, 1, 30.0), silent)
