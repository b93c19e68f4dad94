"""What a paged cache takes, and who may have how much of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from realtime_tts.model import SpeechModel
from realtime_tts.model.paged_cache import PagedKVCache, position_bytes

SIZE = 4


def test_a_cache_takes_its_positions_and_a_scratch_page(model: SpeechModel) -> None:
    shape = replace(model.config.talker.transformer, layers=3, kv_heads=2, head_dim=8)
    one = position_bytes(shape, torch.bfloat16)
    assert one == 2 * 3 * 2 * 8 * 2
    cache = PagedKVCache(shape, 2, 9, torch.device("cpu"), torch.bfloat16, page_size=SIZE)
    assert (cache.positions, cache.pages.nbytes) == (9 * SIZE, (9 + 1) * SIZE * one)


def test_a_slot_can_have_all_pages_unless_told_otherwise(model: SpeechModel) -> None:
    shape = model.config.talker.transformer
    cache = PagedKVCache(shape, 2, 5, torch.device("cpu"), torch.float32, page_size=SIZE)
    cache.upload([(1, 0, (3, 1, 5)), (1, 3, (2, 4))])
    assert (cache.capacity(0), cache.capacity(1)) == (0, 5 * SIZE)
    assert cache.tables.tolist() == [[0] * 5, [3, 1, 5, 2, 4], [0] * 5]
    narrow = PagedKVCache(
        shape, 2, 5, torch.device("cpu"), torch.float32, page_size=SIZE, positions=2 * SIZE
    )
    assert narrow.tables.shape == (3, 2)


def test_pages_join_a_table_at_its_end(model: SpeechModel) -> None:
    shape = model.config.talker.transformer
    cache = PagedKVCache(shape, 2, 5, torch.device("cpu"), torch.float32, page_size=SIZE)
    cache.upload([(0, 0, [2])])
    cache.upload([(0, 1, [4]), (1, 0, [3])])
    assert cache.tables.tolist()[:2] == [[2, 4, 0, 0, 0], [3, 0, 0, 0, 0]]
    with pytest.raises(AssertionError, match="slot 0 has 2 pages"):
        cache.upload([(0, 3, [1])])
    cache.clear(0)
    cache.clear(0)
    assert cache.capacity(0) == 0 and not cache.tables[0].any()
    with pytest.raises(AssertionError, match="slot 0 has no 1 positions"):
        cache.read(0, 1)
    with pytest.raises(AssertionError, match="too few pages"):
        cache.copy_prefix([1], torch.zeros(shape.layers, 2, shape.kv_heads, SIZE + 1, 1))
