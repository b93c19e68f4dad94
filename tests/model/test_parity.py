"""Our modules compute what the official package computes, for every stored case."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from realtime_tts.model import PromptBuilder, PromptSpec, Reference, ReferenceSound, SpeechModel
from realtime_tts.model.prompt import Prompt
from realtime_tts.sampling import PredictorSampling, Sampling
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from tests.model.conftest import speak
from tests.parity import PARITY, rows_of

VARIANTS = ("custom_voice", "voice_design", "base")


@cache
def arrays(variant: str) -> dict[str, NDArray[Any]]:
    with np.load(PARITY / f"tiny-{variant}.npz") as stored:
        return dict(stored)


@dataclass(frozen=True)
class Case:
    """One row of one stored case."""

    variant: str
    name: str
    arguments: tuple[tuple[str, Any], ...]

    def __getitem__(self, what: str) -> NDArray[Any]:
        return arrays(self.variant)[f"{self.name}/{what}"]

    def get(self, what: str) -> NDArray[Any] | None:
        return arrays(self.variant).get(f"{self.name}/{what}")

    def argument(self, what: str, default: Any = None) -> Any:
        return dict(self.arguments).get(what, default)

    @property
    def layout(self) -> str:
        return "full_text" if self.argument("non_streaming_mode") else "streaming"

    @property
    def text_ids(self) -> list[int]:
        return self["input_ids"][3:-5].tolist()

    @property
    def spec(self) -> PromptSpec:
        return PromptSpec(
            speaker=self.argument("speaker"),
            language=self.argument("language"),
            instructions=self.argument("instruct"),
            reference=self.reference,
        )

    @property
    def reference(self) -> Reference | None:
        speaker, codes, ids = self.get("spk"), self.get("ref_codes"), self.get("ref_ids")
        if speaker is None:
            return None
        return Reference(
            speaker=torch.from_numpy(speaker),
            codes=None if codes is None else torch.from_numpy(codes),
            text_ids=() if ids is None else tuple(ids[3:-2].tolist()),
        )


def stored_cases() -> list[Case]:
    """Of the stored arrays only their description is read: whoever collects needs no more."""
    cases = []
    for variant in VARIANTS:
        with np.load(PARITY / f"tiny-{variant}.npz") as stored:
            meta = json.loads(str(stored["meta"]))
        cases += [Case(variant, row, tuple(given.items())) for row, given in rows_of(meta)]
    return cases


CASES = stored_cases()
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.variant}-{case.name}")


def trailing(builder: PromptBuilder, case: Case, prompt: Prompt, count: int) -> list[Tensor]:
    """Text vectors of the first `count` frames, by the rule in the package docstring."""
    left = case.text_ids[prompt.text_used :]
    vectors = list(builder.text(left)) if left else []
    if not prompt.eos_used:
        vectors.append(builder.tts_eos)
    return (vectors + [builder.tts_pad] * count)[:count]


def relative_error(found: list[Tensor], wanted: NDArray[Any]) -> float:
    difference = np.abs(torch.stack(found).numpy() - wanted).max()
    return float(difference / np.sqrt(np.mean(np.square(wanted))))


def sampling(case: Case) -> Sampling:
    return Sampling(
        temperature=0,
        predictor=PredictorSampling(temperature=0),
        repetition_penalty=case.argument("repetition_penalty", 1.05),
    )


@each_case
def test_text_becomes_the_official_ids(case: Case) -> None:
    tokenizer = Qwen2Tokenizer.from_folder(PARITY / f"tiny-{case.variant}")
    body = tokenizer.encode("assistant\n" + case.argument("text"))[2:]
    assert body == case.text_ids


@each_case
def test_instructions_become_the_official_ids(
    case: Case, prompts: Callable[[str], PromptBuilder]
) -> None:
    wanted = case.get("instruct_ids")
    assert prompts(case.variant).instruction_ids(case.spec) == (
        [] if wanted is None else wanted.tolist()
    )


@each_case
def test_the_prompt_is_the_official_one(
    case: Case, prompts: Callable[[str], PromptBuilder]
) -> None:
    builder = prompts(case.variant)
    prompt = builder.prompt(case.spec, case.text_ids, case.layout)
    assert prompt.inputs.shape == case["prompt"].shape
    np.testing.assert_allclose(prompt.inputs.numpy(), case["prompt"], atol=1e-5, rtol=0)
    wanted = case["trailing"]  # in a batch, padded with tts_pad to the longest row's length
    found = torch.stack(trailing(builder, case, prompt, len(wanted))).numpy()
    np.testing.assert_allclose(found, wanted, atol=1e-5, rtol=0)
    np.testing.assert_allclose(
        builder.tts_pad.numpy(), arrays(case.variant)["tts_pad"], atol=1e-5, rtol=0
    )


SPOKEN = [(variant, False) for variant in VARIANTS] + [("custom_voice", True)]
"""Sets of cases, and whether they are those that end by themselves, which only one variant has."""


@pytest.mark.parametrize(("variant", "ends"), SPOKEN)
def test_greedy_speech_is_the_official_speech(
    variant: str,
    ends: bool,
    load: Callable[[str], SpeechModel],
    prompts: Callable[[str], PromptBuilder],
    utterance: Callable[..., Any],
) -> None:
    """All cases at once, those of an official batch, too. Codes equal frame by frame; logits,
    hidden states and waveform within rounding."""
    cases = [c for c in CASES if c.variant == variant and c.name.endswith("_eos") == ends]
    assert cases
    model, builder, rows = load(variant), prompts(variant), list[Any]()
    most = max(len(case["codes"]) for case in cases)
    for slot, case in enumerate(cases):
        prompt = builder.prompt(case.spec, case.text_ids, case.layout)
        text = trailing(builder, case, prompt, most)
        rows.append(utterance(prompt, text, builder.tts_pad, sampling(case), slot=slot))
    speak(model, rows, most + ends, may_end=ends)
    for case, row in zip(cases, rows, strict=True):
        is_official(case, row, model)
        assert row.ended == ends, case.name


def is_official(case: Case, row: Any, model: SpeechModel) -> None:
    """As far as the stored case goes, which may be shorter than others of the same crowd."""
    wanted, name = case["codes"], case.name
    count = len(wanted)
    codes = torch.stack(row.codes)
    assert codes[:count].tolist() == wanted.tolist(), name
    assert len(codes) == count or not row.ended, name
    if case.variant != "base":  # which is kept without states
        assert relative_error(row.hidden[:count], case["hidden"]) < 1e-3, name
        assert relative_error(row.logits[:count], case["logits"]) < 1e-3, name
    state = model.codec.new_state(1)
    ReferenceSound(model.codec, state).begin(0, case.spec.reference)
    samples = model.codec.decode(codes[None, :count], [0], state)[0]
    np.testing.assert_allclose(samples.numpy(), case["wav"], atol=1e-4, rtol=0, err_msg=name)


@pytest.mark.parametrize("variant", ["custom_voice", "voice_design"])
def test_predictor_logits_are_the_official_ones(
    variant: str, load: Callable[[str], SpeechModel]
) -> None:
    model, case = load(variant), next(case for case in CASES if case.variant == variant)
    codes = torch.from_numpy(case["codes"]).long()
    hidden = torch.from_numpy(case["hidden"])
    seen = []

    def forced(scores: Tensor, codebook: int) -> Tensor:
        seen.append(scores)
        return codes[:, codebook]

    first = codes[:, 0]
    found = model.predictor.codes(hidden, model.talker.codec_embedding[first], forced)
    assert torch.equal(found, codes[:, 1:])
    assert relative_error(seen, case["mtp_logits"].transpose(1, 0, 2)) < 1e-3


def test_the_codec_decodes_like_the_official_causal_pass(model: SpeechModel) -> None:
    codes = torch.from_numpy(arrays("custom_voice")["codec/codes"]).long()
    samples = model.codec.decode(codes[None], [0], model.codec.new_state(1))[0]
    np.testing.assert_allclose(
        samples.numpy(), arrays("custom_voice")["codec/wav_full"], atol=1e-4, rtol=0
    )


def test_without_the_reference_before_it_the_sound_would_be_another(
    load: Callable[[str], SpeechModel],
) -> None:
    """So that the test above says something: the codec hears 0.75 s back."""
    codec = load("base").codec
    case = next(case for case in CASES if case.name == "icl_ns")
    codes = torch.from_numpy(case["codes"]).long()
    samples = codec.decode(codes[None], [0], codec.new_state(1))[0].numpy()
    assert np.abs(samples - case["wav"]).max() > 1e-2


def test_text_arriving_later_gives_the_same_reference_prompt(
    prompts: Callable[[str], PromptBuilder],
) -> None:
    builder = prompts("base")
    case = next(case for case in CASES if case.name == "icl_textlong_st")
    whole = builder.prompt(case.spec, case.text_ids, "streaming")
    needed = builder.text_needed(case.spec)
    assert 1 < needed < len(case.text_ids)
    early = builder.prompt(case.spec, case.text_ids[:needed], "streaming", finished=False)
    assert torch.equal(early.inputs, whole.inputs)
    assert (early.text_used, early.eos_used) == (whole.text_used, whole.eos_used)
