"""A voice's own speech, as codes to learn from: what was understood of it, and nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest
import torch

from realtime_tts import demo_voice
from tests.when_used import WhenUsed
from tools.demo_voice.codes import CodedShard
from tools.demo_voice.own_speech import Judge, Speaker, Utterance, keep, understood
from tools.demo_voice.settings import IM_START
from tools.demo_voice.speech import VOICE_NAMES

if TYPE_CHECKING:
    from tools.demo_voice import voice_data, voice_trainer
else:  # the compiler comes with them
    voice_data, voice_trainer = (
        WhenUsed(f"tools.demo_voice.{name}") for name in ("voice_data", "voice_trainer")
    )

TEXTS = ("Yes, of course.", "It is late.", "Good morning.")
GONE = "Good morning."
"""Is never understood."""


@pytest.mark.parametrize(
    ("heard", "right"),
    [
        ("Yes, of course. It is late. Good morning.", [True, True, True]),
        ("Yes of coarse, it is late, good morning", [False, True, True]),
        ("yes of course it is good morning", [True, False, True]),
        ("yes of course well it is late good morning", [False, False, True]),
        ("yes of course it is late good morning adam", [True, True, False]),
        ("yes ofcourse it is late good morning", [True, True, True]),
        ("", [False, False, False]),
    ],
)
def test_an_error_counts_for_the_texts_it_is_in(heard: str, right: list[bool]) -> None:
    assert understood(TEXTS, heard) == right


def test_letters_and_numbers_are_compared_as_they_are_said() -> None:
    assert understood(["The F B I called.", "He is thirty."], "The FBI called. He is 30.") == [
        True,
        True,
    ]


class Ears:
    """Understands each text but one, always a turn late."""

    def __init__(self) -> None:
        self.heard: list[Utterance] = []
        self.waiting: list[Utterance] = []

    def hear(self, utterance: Utterance) -> list[tuple[Utterance, bool]]:
        judged = self.rest()
        self.waiting.append(utterance)
        return judged

    def rest(self) -> list[tuple[Utterance, bool]]:
        judged = [(one, one.text != GONE) for one in self.waiting]
        self.heard += self.waiting
        self.waiting = []
        return judged


def test_what_was_understood_is_kept_and_can_be_learnt(tmp_path: Path) -> None:
    ears = Ears()
    speaker = Speaker(demo_voice.folder(), [GONE, *TEXTS[:2]], seed=3)
    asyncio.run(keep(speaker, cast(Judge, ears), tmp_path, "speech-own-0", seconds=60))
    assert [one.reason for one in ears.heard] == ["complete"] * 4
    assert sorted(one.attempt for one in ears.heard if one.text == GONE) == [0, 1], "said again"
    held = CodedShard.load(tmp_path / "speech-own-0-0000.npz")
    said = [one for one in ears.heard if one.text != GONE]
    assert [len(one.samples) // 1920 for one in said] == held.entries[:, 3].tolist()
    assert [one.voice for one in said] == held.entries[:, 2].tolist()
    assert {*held.entries[:, 2].tolist()} <= {*range(len(VOICE_NAMES))}
    for one, (frame, token, _, frames, tokens) in zip(said, held.entries.tolist(), strict=True):
        assert held.tokens[token : token + tokens].tolist() == one.ids
        words = held.words[frame : frame + frames]
        assert {*words[words >= 0].tolist()} == {*range(len(one.text.split()))}, "each is spoken"
    _learn(held)


def _learn(held: CodedShard) -> None:
    """Its phones and pitch are not known: nothing is learnt of them, and all of the rest."""
    device = torch.device("cpu")
    pool = voice_data.VoicePool([IM_START, 7, 8], device, frames=500)
    assert pool.add(held)
    rows = pool.pack(np.array([0, 1]), 128, np.random.default_rng(1))
    batch = pool.batch(pool.plan(rows[:1]), 1, 128)
    assert (batch.phones == -1).all()
    plan = voice_trainer.Plan(1.0, 1, 128, 16, 1e-3, 0.0, 60.0, 1.0, warm_up=1)
    trainer = voice_trainer.Trainer(plan, device, compiled=False, recorded=False)
    trainer.restore(demo_voice.folder())
    losses = trainer.step(batch, 0.1)
    assert losses["phones"] == losses["pitch"] == 0
    assert 0 < losses["first"] < 1.5 and losses["pointer"] < 1.5, "it has said this itself"


def test_a_short_training_is_not_the_average_of_its_beginning() -> None:
    plan = voice_trainer.Plan(1.0, 1, 128, 16, 1e-3, 0.0, 60.0, 1.0, warm_up=20)
    assert voice_trainer.rate_share(0.1, 9, plan.warm_up) == 0.5
    assert voice_trainer.rate_share(0.1, 30, plan.warm_up) == 1.0
    shares = [voice_trainer.average_share(steps) for steps in (10, 100, 1_000, 100_000)]
    assert shares == pytest.approx([0.9, 9 / 19, 9 / 109, 0.02])
