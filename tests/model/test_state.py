"""The talker's keys and values: they grow, are given back, and how they lie changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from realtime_tts.model import SpeechModel, state
from realtime_tts.model.state import KVCache
from tests.model.conftest import speak


def held(cache: KVCache) -> int:
    """Bytes of memory."""
    return sum(b.numel() * b.element_size() for b in cache._buffers if b is not None)


def test_memory_follows_the_speech_made(model: SpeechModel) -> None:
    cache = model.talker.new_cache(8)
    assert held(cache) == 0
    cache.begin([3], 10)
    one = held(cache)
    cache.begin([3], 200)
    assert (held(cache), cache.lengths[3]) == (one, 210)
    cache.begin([3], 100)
    assert held(cache) == 2 * one
    cache.begin([5], 1)
    assert held(cache) == 3 * one


def test_a_cleared_slot_keeps_little(model: SpeechModel) -> None:
    cache = model.talker.new_cache(2)
    cache.begin([0], 10)
    one = held(cache)
    cache.begin([0], 2000)
    cache.clear(0)
    assert (cache.lengths[0], held(cache)) == (0, 0)
    cache.begin([0], 10)
    cache.clear(0)
    assert held(cache) == one  # the usual size is kept for the next turn


def test_growing_changes_no_bit(
    model: SpeechModel,
    monkeypatch: pytest.MonkeyPatch,
    make_row: Callable[..., Any],
    same_speech: Callable[..., None],
) -> None:
    roomy = make_row(model, 1)
    speak(model, [roomy], 20)
    monkeypatch.setattr(state, "_FIRST_CAPACITY", 4)
    growing = make_row(model, 1)
    speak(model, [growing], 20)
    same_speech(growing, roomy)


def test_a_prompt_needs_an_empty_slot(model: SpeechModel) -> None:
    cache = model.talker.new_cache(1)
    prompt = torch.zeros(3, model.config.talker.transformer.hidden)
    model.talker.prefill(prompt, 0, cache)
    with pytest.raises(AssertionError, match="clear it first"):
        model.talker.prefill(prompt, 0, cache)


def test_one_step_at_a_time_equals_a_prompt_at_once(model: SpeechModel) -> None:
    """The causal pass over a prompt is the same computation as decoding it."""
    prompt = torch.randn(12, model.config.talker.transformer.hidden)
    whole = model.talker.prefill(prompt, 0, model.talker.new_cache(1))
    cache = model.talker.new_cache(2)
    model.talker.prefill(prompt[:4], 1, cache)
    for inputs in prompt[4:]:
        hidden = model.talker.decode(inputs[None], [1], cache)
    torch.testing.assert_close(hidden[0], whole, atol=1e-4, rtol=1e-4)
