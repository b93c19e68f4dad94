"""Heads of prompts that are kept, and memory as people write it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from realtime_tts.engine.opening import PrefixCache
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.errors import ConfigError


def kv(length: int) -> Tensor:
    return torch.zeros(1, 2, 1, length, 4)


def test_the_heads_used_last_are_kept() -> None:
    cache = PrefixCache(10)
    cache.put("a", kv(4))
    cache.put("b", kv(4))
    assert cache.get("a") is not None
    cache.put("c", kv(3))  # no room for all three: b was not used for longest
    assert cache.get("b") is None
    assert cache.get("a") is not None and cache.get("c") is not None


def test_a_head_beyond_all_room_is_not_kept_and_displaces_nobody() -> None:
    cache = PrefixCache(10)
    cache.put("a", kv(10))
    cache.put("huge", kv(11))
    cache.put("a", kv(10))  # again
    assert cache.get("huge") is None and cache.get("a") is not None


def test_the_setting_is_checked_before_anything_is_loaded() -> None:
    assert EngineConfig(device="cuda:1", gpu_memory="50%").gpu_memory == "50%"
    for wrong in ({"gpu_memory": "50%"}, {"gpu_memory": "x", "device": "cuda"}):
        with pytest.raises(ConfigError):
            EngineConfig(**wrong)  # type: ignore[arg-type]
