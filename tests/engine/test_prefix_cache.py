"""Heads of prompts that are kept."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from realtime_tts.engine import prefix_cache
from realtime_tts.engine.prefix_cache import PrefixCache, prefix_positions


def kv(length: int, value: float = 0) -> Tensor:
    return torch.full((1, 2, 1, length, 4), value)


def test_the_heads_used_last_are_kept() -> None:
    kept = kv(10)
    cache = PrefixCache(kept)
    cache.put("a", kv(4, 1))
    cache.put("b", kv(4, 2))
    assert cache.get("a") == range(4)
    cache.put("c", kv(3, 3))  # no room for all three: b was not used for longest
    assert cache.get("b") is None
    assert cache.get("a") == range(4) and cache.get("c") == range(4, 7)
    assert torch.equal(kept[:, :, :, :7], torch.cat((kv(4, 1), kv(3, 3)), 3))


def test_there_is_room_only_where_it_is_in_one_piece() -> None:
    kept = kv(10)
    cache = PrefixCache(kept)
    for number, name in enumerate("abc"):
        cache.put(name, kv(3, number))
    cache.get("b")  # the others go, one after the other, until four are free side by side
    cache.put("d", kv(4, 4))
    assert [cache.get(name) for name in "abcd"] == [None, range(3, 6), None, range(6, 10)]
    cache.put("e", kv(3, 5))
    assert cache.get("e") == range(3)
    assert torch.equal(kept, torch.cat((kv(3, 5), kv(3, 1), kv(4, 4)), 3))


def test_a_head_beyond_all_room_is_not_kept_and_displaces_nobody() -> None:
    cache = PrefixCache(kv(10))
    cache.put("a", kv(10))
    cache.put("huge", kv(11))
    cache.put("a", kv(10))  # again
    assert cache.get("huge") is None and cache.get("a") is not None


def test_memory_decides_how_many_prefixes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_cache, "triton_available", lambda: True)
    assert [prefix_positions(many) for many in (100, 16_384, 10**6)] == [256, 512, 2048]
    monkeypatch.setattr(prefix_cache, "triton_available", lambda: False)
    assert prefix_positions(10**6) == 256
