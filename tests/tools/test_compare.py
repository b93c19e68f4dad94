"""Figures of several checkpoints, side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from realtime_tts import demo_voice
from realtime_tts.engine.made_codes import packed
from tools.demo_voice.compare import SETS, Heard, Request, Speaker, header, listen, requests, row
from tools.demo_voice.text_sets import TextSet
from tools.demo_voice.utterance import Utterance

CPU = torch.device("cpu")
SET = TextSet("held_out", ("Look.", "It is 5."), ("Look.", "It is five."))


class Ears:
    """Hears what it is told to, and how loud the edges are."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts, self.quiet = iter(texts), True
        self.given: list[int] = []

    def transcribe(self, sounds: Sequence[np.ndarray], sample_rate: int) -> list[str]:
        self.given.append(len(sounds))
        edge = round(0.3 * sample_rate)
        self.quiet &= all(not sound[:edge].any() and not sound[-edge:].any() for sound in sounds)
        return [next(self._texts) for _ in sounds]


def test_every_text_is_said_by_both_voices_in_both_layouts_and_judged() -> None:
    wanted = [*requests([SET], seeds=1)]
    asked = [(one.text, one.voice, one.layout) for one in wanted]
    assert asked == [
        (text, voice, layout)
        for text in SET.texts
        for voice in (0, 1)
        for layout in ("full_text", "streaming")
    ]
    said = asyncio.run(Speaker(demo_voice.folder(), wanted, CPU, "30%").spoken())
    assert [request for request, _ in said] == wanted
    assert all(one.reason == "complete" and len(one.samples) > 4_000 for _, one in said)
    ears = Ears(["Look.", "Luke.", "Look", "look"] + 3 * ["It is five."] + ["It is fine, though."])
    heard = listen(said, ears, at_once=3)
    assert ears.quiet and ears.given == [3, 3, 2]
    assert [(one.words, one.errors) for one in heard] == [
        *[(1, 0), (1, 1), (1, 0), (1, 0)],
        *[(3, 0), (3, 0), (3, 0), (3, 2)],
    ]
    assert not any(one.cut_off for one in heard)
    assert row("it", heard)[:2] == ["it", "3"] and header(heard)[:2] == [
        "checkpoint",
        "held_out, of 16",
    ]


def test_a_seed_is_of_one_text_and_one_time() -> None:
    seeds = [one.seed for one in requests([SET], seeds=3)]
    assert len(seeds) == 24 and len(set(seeds)) == 6


def heard_of(text: str, tokens: Sequence[int], reason: str = "complete", ids: int = 6) -> Heard:
    said = Utterance((text,), 0, [*range(ids)], [0] * ids)
    said.reason = reason
    said.pcm += bytes(2 * 1920 * len(tokens))
    said.tokens += packed(np.array(tokens, np.int16)[:, None])
    return Heard.of(Request("held_out", text, text, 0, "streaming", 1), said, text)


@pytest.mark.parametrize(
    ("tokens", "reason", "back", "cut_off"),
    [
        ([-1, 0, 1, 2, 3, 3, 5], "complete", 0, False),
        ([-1, 0, 2, 1, 3, 2, 3], "complete", 2, False),
        ([-1, 0, 1, 2, 2, 2, 2], "complete", 0, True),
        ([-1, 0, 1, 2, 3, 4, 5], "limit", 0, True),
        ([], "complete", 0, True),
    ],
)
def test_heads_that_step_back_and_texts_that_are_cut_off_are_counted(
    tokens: Sequence[int], reason: str, back: int, cut_off: bool
) -> None:
    one = heard_of("It is so.", tokens, reason)
    assert (one.steps_back, one.cut_off) == (back, cut_off)
    assert row("it", [one])[-2:] == [str(int(back > 0)), str(int(cut_off))]


def test_only_short_texts_that_end_in_a_stop_have_a_release() -> None:
    tone = np.sin(np.arange(480) * 0.2)
    sound = np.concatenate([level * tone for level in 15 * [0.3] + 3 * [0.0] + 14 * [0.02]])
    for text, release in (("That cat.", 0.28), ("That is mine.", None), (7 * "A cat. ", None)):
        said = Utterance((text,), 0, [0], [0])
        said.pcm += (32767 * sound).astype("<i2").tobytes()
        one = Heard.of(Request("short", text, text, 0, "streaming", 1), said, text)
        assert one.release == release
        ms = "nan; 0 of 0" if release is None else "280; 1 of 1"
        assert row("it", [one])[2] == ms


@pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)
def test_each_set_has_texts(path: Path) -> None:
    assert len(TextSet.read(path).texts) >= 20
