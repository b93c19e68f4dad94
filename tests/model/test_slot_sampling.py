"""Sampling with its state on the device draws what the plain one draws, bit for bit."""

from __future__ import annotations

import pytest
import torch

from realtime_tts.model import SpeechModel
from realtime_tts.model.sampling import SamplingState
from realtime_tts.model.slot_sampling import NARROW_K, SlotSampling, is_wide
from realtime_tts.sampling import PredictorSampling, Sampling

CPU = torch.device("cpu")
NARROW = [
    Sampling(),
    Sampling(temperature=0, repetition_penalty=1.4),
    Sampling(top_k=0, predictor=PredictorSampling(top_k=0), repetition_penalty=1.0),
    Sampling(temperature=1.7, top_k=NARROW_K, predictor=PredictorSampling(temperature=0.0)),
    Sampling(
        temperature=0, top_k=500, top_p=0.5, predictor=PredictorSampling(temperature=0, top_p=0.5)
    ),
]
WIDE = [
    Sampling(top_k=200),
    Sampling(predictor=PredictorSampling(top_k=65)),
    Sampling(top_p=0.7, predictor=PredictorSampling(top_p=0.4)),
]


def test_only_rows_that_need_it_are_wide() -> None:
    assert [is_wide(s) for s in NARROW + WIDE] == [False] * len(NARROW) + [True] * len(WIDE)


@pytest.mark.parametrize(
    ("settings", "fused"),
    [(NARROW, False), (NARROW, True), (NARROW + WIDE, False)],
    ids=["narrow", "fused", "wide"],
)
def test_codes_are_those_of_the_plain_state(
    model: SpeechModel, settings: list[Sampling], fused: bool
) -> None:
    slots = list(range(len(settings)))
    plain = SamplingState(model.config, len(slots), CPU)
    device = SlotSampling(model.config, len(slots), CPU)
    device.fused = fused
    seeds = [7, -3, 1 << 70, 0, 5, 6, 7, 8][: len(slots)]
    for slot, (sampling, seed) in enumerate(zip(settings, seeds, strict=True)):
        plain.begin(slot, sampling, seed)
    given = device.settings(list(zip(settings, seeds, strict=True)))
    device.begin(torch.tensor(slots), torch.tensor(given))
    generator = torch.Generator().manual_seed(0)
    for step in range(30):
        order = torch.randperm(len(slots), generator=generator)[: 1 + step % len(slots)]
        logits = 4 * torch.randn(len(order), model.config.talker.vocab, generator=generator)
        logits[:, model.config.talker.eos_id] += 2
        first, failed = plain.first_codes(logits, order.tolist())
        codes, _, choose = device.first_codes(logits, order, len(settings) > len(NARROW))
        assert codes.tolist() == first.tolist()
        assert not failed.any()
        for book in (1, 2, 15):
            others = 3 * torch.randn(len(order), model.config.predictor.vocab, generator=generator)
            wanted = plain.other_codes(others, book, order.tolist())
            assert choose(others, book).tolist() == wanted.tolist()


def test_a_new_utterance_begins_afresh(model: SpeechModel) -> None:
    """It penalises nothing that the last one said, and its frames count from 0."""
    state, slot = SlotSampling(model.config, 2, CPU), torch.tensor([1])
    settings = torch.tensor(state.settings([(Sampling(temperature=0, repetition_penalty=1.5), 3)]))
    logits = torch.zeros(1, model.config.talker.vocab)
    logits[0, 5], logits[0, 6], logits[0, model.config.talker.eos_id] = 1.4, 1.0, 9.0
    for _ in range(2):
        state.begin(slot, settings)
        codes = [int(state.first_codes(logits, slot, wide=False)[0]) for _ in range(3)]
        assert codes == [5, 6, model.config.talker.eos_id]


def test_rows_with_nan_are_named_and_give_some_code(model: SpeechModel) -> None:
    state = SlotSampling(model.config, 3, CPU)
    logits = torch.zeros(3, model.config.talker.vocab)
    logits[1, 4] = float("nan")
    codes, failed, _ = state.first_codes(logits, torch.arange(3), wide=True)
    assert failed.tolist() == [False, True, False]
    assert all(0 <= code < model.config.talker.vocab for code in codes.tolist())
