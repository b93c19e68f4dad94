"""Heads of prompts that are kept, and memory as people write it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from realtime_tts.engine.memory import KVMemory
from realtime_tts.engine.opening import PrefixCache
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.errors import ConfigError

GIB = 2**30


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


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("40GiB", 40 * GIB),
        ("1.5 gib", int(1.5 * GIB)),
        ("2000000", 2_000_000),
        ("3MB", 3_000_000),
        ("80%", 80 * GIB),
        ("0.5", 50 * GIB),
        ("1", 100 * GIB),
    ],
)
def test_memory_is_a_size_or_a_share_of_what_is_free(text: str, size: int) -> None:
    assert KVMemory.parse(text).bytes_of(100 * GIB, 140 * GIB) == size


def test_without_a_word_a_margin_is_left() -> None:
    assert KVMemory().bytes_of(100 * GIB, 140 * GIB) == 86 * GIB
    assert KVMemory().bytes_of(10 * GIB, 16 * GIB) == 6 * GIB


@pytest.mark.parametrize("text", ["", "much", "-3GiB", "40 parsecs", "0", "120%", "3 GiB or so"])
def test_what_is_no_memory_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        KVMemory.parse(text)


def test_memory_that_is_not_there_is_refused_with_a_hint() -> None:
    with pytest.raises(ConfigError, match="40.0 GiB .* do not fit .* --kv-memory"):
        KVMemory.parse("40GiB").bytes_of(30 * GIB, 80 * GIB)
    with pytest.raises(ConfigError, match="0.0 GiB"):
        KVMemory().bytes_of(GIB, 8 * GIB)


def test_the_setting_is_checked_before_anything_is_loaded() -> None:
    assert EngineConfig(device="cuda:1", kv_memory="50%").kv_memory == "50%"
    for wrong in ({"kv_memory": "50%"}, {"kv_memory": "x", "device": "cuda"}):
        with pytest.raises(ConfigError):
            EngineConfig(**wrong)  # type: ignore[arg-type]
