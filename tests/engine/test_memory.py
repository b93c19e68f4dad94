"""How a GPU's memory is shared out: slots, and keys and values."""

from __future__ import annotations

import pytest
import torch

from realtime_tts.engine.make import footprint
from realtime_tts.engine.memory import (
    MOST_SLOTS,
    USUAL_POSITIONS,
    Footprint,
    MemoryBudget,
    MemoryPlan,
    plan_memory,
)
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.errors import ConfigError
from realtime_tts.model.config import ModelConfig
from realtime_tts.model.config_files import read_config
from realtime_tts.model.random_weights import released_config
from tests.parity import PARITY

GIB = 2**30
BF16 = torch.bfloat16
CONTEXT = GIB // 2
"""What CUDA itself takes of a card, roughly."""

PARAMETERS = {"1.7B": 1_916_676_352, "0.6B": 905_788_672}
"""As published; the codec has 114,323,137, which a GPU holds in float32 and in bfloat16."""

CODEC = 114_323_137


def released(size: str) -> ModelConfig:
    return released_config(size, read_config(PARITY / "tiny-custom_voice").text)


def planned(card: int, size: str = "1.7B", slots: int | None = None) -> MemoryPlan:
    """On a card, or within a budget, of so many GiB with the weights of a release on it."""
    model = released(size)
    free = card * GIB - CONTEXT - 2 * PARAMETERS[size] - 6 * CODEC
    return plan_memory(
        footprint(model, BF16, model.generation.max_new_tokens - 1),
        free,
        card * GIB,
        slots or MOST_SLOTS,
        fit=slots is None,
    )


def test_the_footprint_follows_from_the_dimensions() -> None:
    needs = footprint(released("1.7B"), BF16, 8191)
    assert needs.position == 2 * 28 * 8 * 128 * 2, "keys and values, 28 layers, 8 heads of 128"
    # 270 KB of taps, twice, 2.6 MB of ring, and 16 positions of the predictor's five layers.
    assert needs.slot == pytest.approx(2 * 270e3 + 2.62e6 + 5 * 2 * 8 * 128 * 16 * 2, rel=0.05)
    assert needs.longest == 8191 + 64
    assert footprint(released("1.7B"), torch.float32, 100) == Footprint(
        2 * needs.position, 2 * needs.slot, 164
    )


@pytest.mark.parametrize(
    ("card", "large", "small"), [(8, 16, 32), (16, 96, 128), (24, 192, 256), (80, 512, 512)]
)
def test_a_card_gets_the_slots_that_find_room_on_it(card: int, large: int, small: int) -> None:
    assert (planned(card, "1.7B").slots, planned(card, "0.6B").slots) == (large, small)


@pytest.mark.parametrize("card", [131, 140])
def test_an_h200_speaks_at_least_512_turns(card: int) -> None:
    """Its 141 GB, however they are counted."""
    assert planned(card).slots >= 512


@pytest.mark.parametrize("card", [8, 12, 16, 24, 40, 48, 80, 140])
def test_every_slot_finds_its_positions_the_longest_turn_too_and_something_is_left(
    card: int,
) -> None:
    needs, found = footprint(released("1.7B"), BF16, 8191), planned(card)
    assert found.kv_bytes >= needs.position * USUAL_POSITIONS * found.slots
    assert found.kv_bytes >= needs.position * needs.longest
    free = card * GIB - CONTEXT - 2 * PARAMETERS["1.7B"] - 6 * CODEC
    assert free - found.kv_bytes - found.slots * needs.slot >= GIB, "for captured programs"


def test_a_larger_card_never_gets_less() -> None:
    cards = [planned(card) for card in range(7, 140, 5)]
    assert [one.slots for one in cards] == sorted(one.slots for one in cards)


def test_slots_that_were_asked_for_stay_on_whatever_card() -> None:
    assert [planned(card, slots=512).slots for card in (16, 24, 140)] == [512] * 3
    assert planned(140, slots=900).slots == 900


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
def test_a_budget_is_a_size_or_a_share_of_the_gpu(text: str, size: int) -> None:
    assert MemoryBudget.parse(text).bytes_of(100 * GIB) == size


@pytest.mark.parametrize(
    "text", ["", "much", "-3GiB", "40 parsecs", "0", "0GiB", "0%", "120%", "3 GiB or so"]
)
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        MemoryBudget.parse(text)


def test_a_budget_larger_than_the_gpu_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"has 24.0 GiB, .* less than the 40.0 GiB of --gpu"):
        MemoryBudget.parse("40GiB").bytes_of(24 * GIB)


def test_slots_that_cannot_fit_are_refused_with_a_hint() -> None:
    with pytest.raises(ConfigError, match="keys and values of 512 slots: .* fewer --slots"):
        planned(8, slots=512)


def test_a_card_on_which_nothing_fits_is_refused() -> None:
    with pytest.raises(ConfigError, match="nothing is left for keys and values of 1 slots"):
        planned(5)


def test_a_card_too_small_for_the_longest_turn_is_left_to_the_engine_to_refuse() -> None:
    """It knows what to say of frames and memory; one slot is the least there is."""
    needs = Footprint(position=GIB // 100, slot=1, longest=10_000)
    assert plan_memory(needs, 10 * GIB, 16 * GIB, 64, fit=True).slots == 1


def test_the_setting_is_checked_before_anything_is_loaded() -> None:
    assert EngineConfig(device="cuda:1", gpu_memory="50%").gpu_memory == "50%"
    for wrong in ({"gpu_memory": "50%"}, {"gpu_memory": "x", "device": "cuda"}):
        with pytest.raises(ConfigError):
            EngineConfig(**wrong)  # type: ignore[arg-type]
