"""A voice's own speech, as codes to learn from: what was understood of it, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest
import torch
from msgspec.structs import replace

from realtime_tts import demo_voice
from realtime_tts.engine.made_codes import unpacked
from realtime_tts.errors import EngineError
from realtime_tts.sampling import Sampling
from tests.when_used import WhenUsed
from tools.demo_voice.codes import CodedShard
from tools.demo_voice.crowd import Job
from tools.demo_voice.judge import Judge
from tools.demo_voice.own_speech import Shelf, Speaker, keep, texts
from tools.demo_voice.settings import IM_START, UNKNOWN, UNLEARNT
from tools.demo_voice.speech import VOICE_NAMES
from tools.demo_voice.utterance import Utterance, coded

if TYPE_CHECKING:
    from tools.demo_voice import voice_data, voice_trainer
else:  # the compiler comes with them
    voice_data, voice_trainer = (
        WhenUsed(f"tools.demo_voice.{name}") for name in ("voice_data", "voice_trainer")
    )

CPU = torch.device("cpu")
GONE = "Good morning."
"""Is never understood."""
TEXTS = ((GONE,), ("Yes, of course.", GONE, "It is mine."), ("It is mine.",))


class Ears:
    """Understands each sentence but one."""

    samples = 1

    def __init__(self) -> None:
        self.heard: list[Utterance] = []

    def right(self, utterances: Sequence[Utterance]) -> list[list[bool]]:
        self.heard += utterances
        return [[sentence != GONE for sentence in one.text] for one in utterances]


def test_what_was_understood_is_kept_and_can_be_learnt(tmp_path: Path) -> None:
    ears = Ears()
    speaker = Speaker(demo_voice.folder(), TEXTS, 3, CPU, "30%")
    asyncio.run(keep(speaker, cast(Judge, ears), Shelf(tmp_path, "speech-own-0"), seconds=600))
    assert [one.reason for one in ears.heard] == ["complete"] * 4
    assert sorted(one.attempt for one in ears.heard if one.text == TEXTS[0]) == [0, 1], "said again"
    held = CodedShard.load(tmp_path / "speech-own-0-0000.npz")
    said = [one for one in ears.heard if one.text != TEXTS[0]]
    assert [len(one.samples) // 1920 for one in said] == held.entries[:, 3].tolist()
    assert [one.voice for one in said] == held.entries[:, 2].tolist()
    assert {*held.entries[:, 2].tolist()} <= {*range(len(VOICE_NAMES))}
    for one, (frame, token, _, frames, tokens) in zip(said, held.entries.tolist(), strict=True):
        assert held.tokens[token : token + tokens].tolist() == one.ids
        words = held.words[frame : frame + frames]
        assert {*words[words >= 0].tolist()} == {*range(len(" ".join(one.text).split()))}
        _check_learnt(one, words, held.phones[frame : frame + frames])
        assert np.array_equal(held.codes[frame : frame + frames], unpacked(bytes(one.codes), 16))
    _learn(held)


def test_the_beginning_of_an_utterance_can_be_left_out(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, "speech", leave_out=1)
    codes = np.arange(4 * 16).reshape(4, 16)
    for text in ("Well then.", "Yes indeed."):
        one = Utterance((text,), 0, [5, 6], [0, 1])
        one.pcm += bytes(4 * 1920 * 2)
        one.codes += codes.astype("<i2").tobytes()
        one.tokens += np.array([-1, 0, 1, 1], "<i2").tobytes()
        shelf.put([(one, [True])])
    shelf.store()
    held = CodedShard.load(tmp_path / "speech-0000.npz")
    assert held.entries[:, [0, 1, 3, 4]].tolist() == [[0, 0, 3, 2], [3, 2, 3, 2]]
    assert held.codes.tolist() == [*codes[1:].tolist()] * 2
    assert held.words.tolist() == [0, 1, 1] * 2 and len(held.phones) == len(held.pitch) == 6


def _check_learnt(utterance: Utterance, words: np.ndarray, phones: np.ndarray) -> None:
    """All frames of a text that was understood, and none of a sentence that was not, but for the
    pause around it."""
    unlearnt = (phones == UNLEARNT).all(1)
    if GONE not in utterance.text:
        assert not unlearnt.any()
        return
    wrong = (words == 3) | (words == 4)
    assert unlearnt[wrong].mean() > 0.8 and unlearnt[~wrong].mean() < 0.2


def test_sentences_are_cut_apart_where_it_is_quiet() -> None:
    words = [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
    loud = [0, 9, 9, 9, 9, 9, 0, 9, 9, 9]
    one = Utterance(("Well then.", "Yes indeed."), 0, [5, 6, 7, 8], [0, 1, 2, 3])
    one.pcm += np.repeat(np.array(loud, "<i2") * 1000, 1920).tobytes()
    one.tokens += np.array(words, "<i2").tobytes()
    assert one.cuts() == [6]
    assert [(text, len(sound) / 1920) for text, sound in one.sentences()] == [
        ("Well then.", 6.5),
        ("Yes indeed.", 3.5),
    ]


@pytest.mark.parametrize(
    ("right", "learnt"),
    [
        ([True, True], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ([True, False], [0, 1, 2, 3, 4, 5, 6, 7]),
        ([False, True], [6, 7, 8, 9]),
    ],
)
def test_the_pause_behind_a_sentence_is_learnt_whatever_comes(
    right: list[bool], learnt: list[int]
) -> None:
    assert _learnt(spoken_in_ten_frames("Yes indeed."), right) == learnt


def test_where_the_last_sentence_was_not_said_no_end_is_learnt() -> None:
    one = spoken_in_ten_frames("Yes indeed.", "Good night.")
    one.ids, one.words = [5, 6, 7, 8, 9, 10], [0, 1, 2, 3, 4, 5]
    assert _learnt(one, [True, True, False]) == [*range(9)]


def spoken_in_ten_frames(*more: str) -> Utterance:
    """Only the first two sentences are in its sound."""
    one = Utterance(("Well then.", *more), 0, [5, 6, 7, 8], [0, 1, 2, 3])
    loud = [0, 9, 9, 9, 9, 9, 0, 0, 9, 9]
    one.pcm += np.repeat(np.array(loud, "<i2") * 1000, 1920).tobytes()
    one.codes += bytes(10 * 16 * 2)
    one.tokens += np.array([0, 0, 0, 1, 1, 1, 1, 2, 3, 3], "<i2").tobytes()
    return one


def _learnt(one: Utterance, right: list[bool]) -> list[int]:
    phones = coded([(one, right)]).phones
    return np.flatnonzero((phones != UNLEARNT).all(1)).tolist()


def _learn(held: CodedShard) -> None:
    """Its phones and pitch are not known: nothing is learnt of them, and all of the rest but what
    was not understood."""
    pool = voice_data.VoicePool([IM_START, 7, 8], CPU, frames=500)
    assert pool.add(held)
    rows = pool.pack(np.array([0, 1]), np.array([[0, 1], [1, 0]]), 192)
    batch = pool.batch(pool.plan(rows[:1]), 1, 192)
    assert (batch.phones == -1).all()
    learnt = (held.phones[:, 0] != UNLEARNT).sum()
    assert (batch.target >= 0).sum() == learnt + len(held.entries), "and the ends of speech"
    plan = voice_trainer.Plan(1.0, 1, 192, 16, 1e-3, 0.0, 60.0, 1.0, warm_up=1)
    trainer = voice_trainer.Trainer(plan, CPU, compiled=False, recorded=False)
    trainer.restore(demo_voice.folder())
    losses = trainer.step(batch, 0.1)
    assert losses["phones"] == losses["pitch"] == 0
    assert 0 < losses["first"] < 1.5 and losses["pointer"] < 1.5, "it has said this itself"


def test_the_end_of_a_sentence_that_was_not_understood_is_not_learnt() -> None:
    labels = np.full((6, 4), UNKNOWN, np.uint8)
    labels[3:] = UNLEARNT
    shard = CodedShard(
        codes=np.ones((6, 16), np.uint8),
        phones=labels,
        pitch=np.zeros((6, 4), np.float16),
        words=np.array([0, 0, 0, 1, 1, 1], np.int16),
        tokens=np.array([5, 6], np.int16),
        token_words=np.array([0, 1], np.int16),
        entries=np.array([[0, 0, 0, 6, 2]], np.int32),
    )
    pool = voice_data.VoicePool([IM_START, 7, 8], CPU, frames=16)
    assert pool.add(shard)
    rows = pool.pack(np.array([0]), np.array([[0, 1]]), 64)
    batch = pool.batch(pool.plan(rows), 1, 64)
    assert (batch.target >= 0).sum() == 3
    assert (batch.heard >= 0).sum() == 3


def test_a_text_that_the_engine_does_not_speak_ends_the_run() -> None:
    class Bad(Speaker):
        def _next_job(self, sampling: Sampling) -> Job | None:
            job = super()._next_job(sampling)
            return job and (job[0], replace(job[1], voice="nobody"))

    async def speak() -> None:
        async for _ in Bad(demo_voice.folder(), TEXTS[:1], 3, CPU, "30%").spoken():
            raise AssertionError("nothing is spoken")

    with pytest.raises(EngineError, match="Good morning"):
        asyncio.run(speak())


def test_sentences_are_joined_to_texts_of_different_lengths() -> None:
    sentences = [f"This is number {number}." for number in range(300)]
    joined = list(texts(sentences, 1))
    assert [sentence for text in joined for sentence in text] == sentences
    assert {1, 2} < {len(text) for text in joined}
    assert joined == list(texts(sentences, 1)) != list(texts(sentences, 2))
    words = [len(" ".join(text).split()) for text in texts(["One of " * 40 + "it."] * 50, 1)]
    assert max(words) <= 200 and 162 in words
    assert list(texts(["No end", "Then"], 7)) == [("No end",), ("Then",)]


def test_a_short_training_is_not_the_average_of_its_beginning() -> None:
    plan = voice_trainer.Plan(1.0, 1, 128, 16, 1e-3, 0.0, 60.0, 1.0, warm_up=20)
    assert voice_trainer.rate_share(0.1, 9, plan.warm_up) == 0.5
    assert voice_trainer.rate_share(0.1, 30, plan.warm_up) == 1.0
    shares = [voice_trainer.average_share(steps) for steps in (10, 100, 1_000, 100_000)]
    assert shares == pytest.approx([0.9, 9 / 19, 9 / 109, 0.02])
