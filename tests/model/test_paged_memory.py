"""What a paged cache takes, and who may have how much of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from realtime_tts.model import SpeechModel
from realtime_tts.model.paged_cache import OutOfPages, PagedKVCache, position_bytes

SIZE = 4


def test_a_cache_takes_its_positions_and_a_scratch_page(model: SpeechModel) -> None:
    shape = replace(model.config.talker.transformer, layers=3, kv_heads=2, head_dim=8)
    one = position_bytes(shape, torch.bfloat16)
    assert one == 2 * 3 * 2 * 8 * 2
    cache = PagedKVCache(shape, 2, 9, torch.device("cpu"), torch.bfloat16, page_size=SIZE)
    assert (cache.positions, cache.bytes) == (9 * SIZE, (9 + 1) * SIZE * one)


def test_a_slot_can_have_all_pages_unless_told_otherwise(model: SpeechModel) -> None:
    shape = model.config.talker.transformer
    cache = PagedKVCache(shape, 2, 5, torch.device("cpu"), torch.float32, page_size=SIZE)
    cache.reserve(1, 5 * SIZE)
    cache.clear(1)
    assert [cache.pages_for(count) for count in (0, 1, SIZE, SIZE + 1)] == [0, 1, 1, 2]
    with pytest.raises(OutOfPages, match="at most 20"):
        cache.reserve(1, 5 * SIZE + 1)


def test_reserved_pages_are_there_when_they_are_needed(model: SpeechModel) -> None:
    shape = model.config.talker.transformer
    cache = PagedKVCache(shape, 2, 4, torch.device("cpu"), torch.float32, page_size=SIZE)
    cache.reserve(0, 3 * SIZE)
    assert (cache.positions, cache.free_positions) == (4 * SIZE, SIZE)
    with pytest.raises(OutOfPages):
        cache.reserve(1, 2 * SIZE)
    cache.reserve(0, 5)
    cache.reserve(0, 3 * SIZE)
    assert cache.free_positions == SIZE
