"""Texts said several times, and a voice that learns from the tries that were understood."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from realtime_tts import demo_voice
from tests.when_used import WhenUsed
from tools.demo_voice.codes import encoder, read_tokenizer, word_tokens
from tools.demo_voice.settings import EOS, IM_START
from tools.demo_voice.tries import (
    TRIES,
    Group,
    TriedShard,
    Trier,
    collect,
    frame_gains,
    gains,
    right_words,
    risen,
    tried,
)
from tools.demo_voice.utterance import Text, Utterance

if TYPE_CHECKING:
    from tools.demo_voice import reinforce
else:  # the compiler comes with it
    reinforce = WhenUsed("tools.demo_voice.reinforce")

CPU = torch.device("cpu")
TEXT = ("He said no.",)
FRAMES = [-1, -1, 0, 0, 1, 1, 2, 2, 2, -1]
"""The words that they say."""
MISHEARD = 0.5
"""The share of tries in which a word was not understood: what it counts."""


class Ears:
    """Hears what it is told to."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = iter(texts)

    def transcribe(self, sounds: Sequence[np.ndarray], sample_rate: int) -> list[str]:
        return [next(self._texts) for _ in sounds]


def said(text: Text, first: int, reason: str = "complete") -> Utterance:
    """An utterance of `FRAMES`, the third of which has the code `first`."""
    one = Utterance(text, 0, *word_tokens(encoder(read_tokenizer(demo_voice.folder())), text[0]))
    codes = np.full((len(FRAMES), 16), 7, "<i2")
    codes[:2], codes[2, 0] = 31, first
    one.codes += codes.tobytes()
    one.tokens += np.array([-1 if w < 0 else one.words.index(w) for w in FRAMES], "<i2").tobytes()
    one.pcm += bytes(len(FRAMES) * 1920 * 2)
    one.reason = reason
    return one


def test_a_word_gains_by_the_tries_in_which_it_was_understood() -> None:
    right = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 1, 0]], np.float32)
    assert np.allclose(gains(right)[:, 0], 0) and np.allclose(gains(right)[:, 2], 0), "all alike"
    assert np.allclose(gains(right)[:, 1], [2 / 3, -2 / 3, -2 / 3, 2 / 3])
    assert np.allclose(gains(right).sum(0), 0)


def test_frames_gain_by_their_word_and_by_the_one_that_follows() -> None:
    found = frame_gains(np.array(FRAMES), np.array([1.0, 0.0, -0.5]))
    assert found.tolist() == [0, 1, 1, 1, 0, -0.5, -0.5, -0.5, -0.5, 0]


@pytest.mark.parametrize(
    ("heard", "right"),
    [
        ("He said no.", [True, True, True]),
        ("You said no.", [False, True, True]),
        ("He said", [True, True, False]),
        ("He said so no.", [True, False, False]),
        ("", [False, False, False]),
    ],
)
def test_words_are_understood_one_by_one(heard: str, right: list[bool]) -> None:
    assert right_words(said(TEXT, 5), heard) == right


def test_a_question_gains_by_its_rise_and_an_unclear_one_by_nothing() -> None:
    pytest.importorskip("pyworld", reason="pitch is measured by pyworld, of [demo-voice]")
    text = ("He said no?", "Why did he?")
    moved = [6.0, -6.0, 20.0, None]
    found = risen([sounding(text, semitones) for semitones in moved])
    assert not found[:, [0, 1, 3, 4, 5]].any(), "only the last word of a question for yes or no"
    assert np.allclose(found[:, 2], [1, -1, 1, 1 / 3], atol=0.15)
    assert abs(gains(found)[3, 2]) < 0.01


def sounding(text: Text, semitones: float | None) -> Utterance:
    """An utterance of `FRAMES`, whose pitch moves so far within a quarter of a second."""
    one = said(text, 5)
    size, rate = 1920 * len(FRAMES), 24_000
    moved = np.arange(size) / (rate / 4) * (semitones or 0.0) / 12
    phase = np.cumsum(2 * np.pi * 150 * 2 ** (moved - moved.mean()) / rate)
    sound = sum(np.sin(n * phase) / n for n in range(1, 9)) if semitones else np.zeros(size)
    one.pcm[:] = (6000 * sound).astype("<i2").tobytes()
    return one


def test_of_an_utterance_that_was_cut_off_nothing_is_right() -> None:
    assert right_words(said(TEXT, 5, "max_tokens"), "He said no.") == [False] * 3


def test_the_tries_of_a_text_are_kept_with_what_they_gained(tmp_path: Path) -> None:
    texts: list[Text] = [("Yes.",), ("No way.",)]
    trier = Trier(demo_voice.folder(), texts, 3, CPU, "30%")
    heard = ["Yes."] * TRIES + ["No way.", "No"] * (TRIES // 2)
    shelf = iter([tmp_path / "tries-0.npz"])
    asyncio.run(collect(trier, Ears(heard), 5, shelf, seconds=600))
    held = TriedShard.load(tmp_path / "tries-0.npz")
    entries = held.entries
    assert len(entries) == len(held.ends) == 2 * TRIES
    assert len(held.gains) == len(held.codes) == entries[:, 3].sum()
    share = TRIES / (TRIES - 1) / 2 * MISHEARD
    words = {tuple(held.tokens[t : t + n].tolist()) for _, t, _, _, n in entries.tolist()}
    assert len(words) == 2
    assert held.layouts.tolist() == [[1, 1]] * TRIES + [[0, 1]] * TRIES
    lost = sorted(held.ends.tolist())
    assert np.allclose(lost, [-share] * 4 + [0] * 8 + [share] * 4, atol=1e-3), "of one text's two"
    for (frame, _, _, frames, _), end in zip(entries.tolist(), held.ends.tolist(), strict=True):
        mine = held.gains[frame : frame + frames].astype(float)
        assert np.allclose(mine[mine != 0], end, atol=1e-3)
        assert (mine != 0).any() == (end != 0)


@pytest.fixture(scope="module")
def pool() -> reinforce.TriedPool:
    """Half of the tries begin with code 14 and are understood."""
    group: Group = [said(TEXT, 14 if number % 2 else 141) for number in range(TRIES)]
    heard = ["He said no." if number % 2 else "You said no." for number in range(TRIES)]
    pool = reinforce.TriedPool([IM_START, 7, 8], CPU, frames=400)
    assert pool.add(tried([group], iter(heard)))
    return pool


def learner(rate: float, likeness: float) -> reinforce.Reinforcer:
    plan = reinforce.Plan(1.0, 2, rate, likeness, length=128, predicted=16)
    return reinforce.Reinforcer(plan, demo_voice.folder(), CPU)


def test_each_position_has_the_gain_of_the_frame_that_it_predicts(
    pool: reinforce.TriedPool,
) -> None:
    share = TRIES / (TRIES - 1) / 2 * MISHEARD
    seen = 0
    for _, (batch, gained) in zip(range(4), pool.batches(2, 128, seed=1), strict=False):
        for row, of in enumerate(batch.rows.utterances):
            for utterance in of[of >= 0].unique():
                here = (of == utterance) & (batch.target[row] >= 0)
                codes, got = batch.target[row][here], gained[row][here]
                assert len(codes) == len(FRAMES) + 1 and codes[-1] == EOS
                sign = 1 if codes[2] == 14 else -1
                assert torch.allclose(got[1:4], torch.full((3,), sign * share), atol=1e-3)
                assert not got[0] and not got[4:].any(), "the other words were understood in all"
                seen += 1
        assert not gained[batch.target < 0].any()
    assert seen >= TRIES


def test_what_gained_becomes_more_probable_and_all_else_stays(pool: reinforce.TriedPool) -> None:
    torch.manual_seed(1)
    free, held = learner(2e-3, 0.0), learner(2e-3, 50.0)
    for one in (free, held):
        for number, (batch, gained) in zip(range(5), pool.batches(1, 128, 1), strict=False):
            one.step(batch, gained, number / 5)
    batch, gained = next(pool.batches(2, 128, 2))
    after = {one: one.losses(batch, gained) for one in (free, held)}
    assert after[free]["first"] < -0.05, "codes with a gain are more probable than they were"
    assert after[held]["first_apart"] < after[free]["first_apart"] / 2
    assert after[held]["others_apart"] < after[free]["others_apart"]


def test_a_code_falls_no_further_by_its_loss_than_it_shall() -> None:
    before = torch.zeros(1, 1, 4)
    codes, lost = torch.tensor([[0]]), torch.tensor([-1.0])
    for fall, moves in ((0.0, True), (-4.0, False)):
        now = before.clone()
        now[..., 0] = fall
        now.requires_grad_()
        reinforce.gaining(before, now, codes, lost).backward()
        assert now.grad is not None and bool(now.grad.any()) == moves


def test_what_is_misheard_in_most_tries_counts_most() -> None:
    heard = ["He said no."] + ["You said no."] * (TRIES - 2) + ["You said so."]
    held = tried([[said(TEXT, 5) for _ in range(TRIES)]], iter(heard))
    of = held.gains.reshape(TRIES, -1).astype(float)
    rare, common = of[0, 2], of[-1, 7]
    assert np.allclose(rare, (TRIES - 1) / TRIES, atol=1e-3), "the only one understood"
    assert np.allclose(common, -1 / TRIES, atol=1e-3), "the only one misheard"


def test_a_code_that_was_hardly_probable_is_not_all_that_is_learnt() -> None:
    before, codes = torch.zeros(2, 1, 4), torch.tensor([[0], [1]])
    before[0, 0, 0] = -40.0
    now = torch.zeros(2, 1, 4, requires_grad=True)
    loss = reinforce.gaining(before, now, codes, torch.tensor([-1.0, -1.0]))
    loss.backward()
    assert loss < 20 and now.grad is not None
    assert not now.grad[0].any() and now.grad[1].any()


def test_small_gains_count_as_much_beside_the_likeness() -> None:
    before, codes = torch.zeros(40, 1, 4), torch.arange(40)[:, None] % 4
    now = torch.randn(40, 1, 4, generator=torch.Generator().manual_seed(1))
    gained = torch.tensor([0.5, -0.25]).repeat(20)
    whole, tenth = (reinforce.gaining(before, now, codes, gained / part) for part in (1, 10))
    assert torch.allclose(whole, tenth) and whole.abs() > 0.05


def test_tries_are_learnt_in_the_layout_in_which_they_were_said() -> None:
    group = [said(TEXT, 5) for _ in range(TRIES)]
    for number, one in enumerate(group):
        one.layout = "full_text" if number % 2 else "streaming"
    pool = reinforce.TriedPool([IM_START, 7, 8], CPU, frames=400)
    assert pool.add(tried([group], iter(["He said no."] * TRIES)))
    batch, _ = next(pool.batches(2, 256, seed=1))
    sizes = [(batch.rows.utterances == number).sum().item() for number in range(TRIES)]
    streaming, full = sorted(set(sizes))
    assert full == streaming + len(group[0].ids) + 1, "its text comes before its frames"
    assert sizes.count(full) == sizes.count(streaming)


def test_what_was_learnt_is_kept_as_export_reads_it(tmp_path: Path) -> None:
    one = learner(1e-4, 1.0)
    one.save(tmp_path / "voice.pt")
    kept = torch.load(tmp_path / "voice.pt", weights_only=True)["average"]
    assert kept.keys() == one.voice.state_dict().keys()
