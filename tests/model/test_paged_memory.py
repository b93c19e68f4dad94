"""What a paged cache takes, and who may have how much of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from realtime_tts.errors import ConfigError
from realtime_tts.model import SpeechModel
from realtime_tts.model.paged_cache import (
    OutOfPages,
    PagedKVCache,
    page_bytes,
    pages_for_memory,
)

SIZE = 4


def test_memory_is_what_was_asked_for(model: SpeechModel) -> None:
    shape = replace(model.config.talker.transformer, layers=3, kv_heads=2, head_dim=8)
    one = page_bytes(shape, torch.bfloat16, page_size=4)
    assert one == 3 * 2 * 2 * 8 * 4 * 2
    pages = pages_for_memory(shape, 10 * one + 5, torch.bfloat16, page_size=4)
    cache = PagedKVCache(shape, 2, pages, torch.device("cpu"), torch.bfloat16, page_size=4)
    assert (pages, cache.bytes, cache.free_pages) == (9, 10 * one, 9)
    with pytest.raises(ConfigError, match=f"takes {one}, and two are the least"):
        pages_for_memory(shape, 2 * one - 1, torch.bfloat16, page_size=4)


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
    assert cache.free_pages == 1
