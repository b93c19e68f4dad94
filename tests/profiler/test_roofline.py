"""The roofline against what is published of the released checkpoints."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime_tts.model.config import ModelConfig
from realtime_tts.model.config_files import read_config
from realtime_tts.model.random_weights import released_config
from realtime_tts.profiler.roofline import (
    Work,
    codec_keys,
    codec_parts,
    codec_taps,
    codec_work,
    predictor_work,
    talker_work,
)
from tests.parity import PARITY

TINY = read_config(PARITY / "tiny-custom_voice")
LARGE, SMALL = (released_config(size, TINY.text) for size in ("1.7B", "0.6B"))


@pytest.mark.parametrize(("config", "amount"), [(LARGE, 2.831e9), (SMALL, 0.887e9)])
def test_a_talker_step_reads_every_weight_and_uses_it_once(
    config: ModelConfig, amount: float
) -> None:
    work = talker_work(config, rows=1, context=0, item=2)
    assert work.flops == pytest.approx(amount, rel=1e-3)
    assert work.weight_bytes == pytest.approx(amount, rel=1e-3)
    assert work.state_bytes == 114_688  # one position of keys and values


def test_keys_and_values_grow_with_rows_and_context() -> None:
    assert talker_work(LARGE, rows=64, context=511, item=2).state_bytes == 64 * 512 * 114_688
    few, many = (talker_work(LARGE, 1, context, 2).flops for context in (0, 300))
    assert many - few == 300 * 4 * 28 * 2048


def test_the_predictor_reads_its_layers_fifteen_times_unless_they_stay_in_the_cache() -> None:
    work = predictor_work(SMALL, rows=1, item=2)
    assert work.flops == pytest.approx(2.579e9, rel=1e-3)
    assert work.weight_bytes == pytest.approx(2.422e9, rel=1e-3)
    cached = predictor_work(SMALL, rows=1, item=2, cache_bytes=1 << 30)
    assert cached.weight_bytes == pytest.approx(220e6, rel=5e-3)
    assert cached.flops == work.flops


def test_only_the_first_pass_needs_the_projection_of_a_wide_talker() -> None:
    extra = predictor_work(LARGE, 1, 2).flops - predictor_work(SMALL, 1, 2).flops
    assert extra == 2 * 2 * 2048 * 1024


def test_the_codec_has_the_published_weights_operations_and_state() -> None:
    work = codec_work(SMALL.codec, rows=1, item=2)
    assert work.flops == pytest.approx(4.959e9, rel=1e-3)
    assert work.weight_bytes == pytest.approx(211e6, rel=5e-3)
    assert (codec_keys(SMALL.codec), codec_taps(SMALL.codec)) == (1_163_264, 135_232)


@pytest.mark.parametrize("config", [TINY, SMALL], ids=["tiny", "released"])
def test_the_counted_state_is_the_one_that_the_decoder_keeps(config: ModelConfig) -> None:
    import torch

    from realtime_tts.model.codec import CodecDecoder
    from realtime_tts.model.random_weights import RandomWeights

    meta = torch.device("meta")
    weights = RandomWeights(device=meta, dtype=torch.float32, stored=torch.float32)
    state = CodecDecoder(config.codec, weights, meta).new_state(1)
    assert codec_keys(config.codec) + codec_taps(config.codec) == state.memory.shape[1]
    counted = sum(part.weights for part in codec_parts(config.codec))
    products = [name for name in weights.sizes if name.endswith(".weight")]
    unused = ("quantizer", "norm")  # looked up, and not products
    stored = sum(weights.sizes[n] for n in products if not any(word in n for word in unused))
    assert counted == stored


@given(rows=st.integers(1, 512))
def test_weights_are_read_once_for_all_rows(rows: int) -> None:
    one, many = codec_work(SMALL.codec, 1), codec_work(SMALL.codec, rows)
    assert many.weight_bytes == one.weight_bytes
    assert many.flops == rows * one.flops


def test_the_floor_is_the_longer_of_moving_and_computing() -> None:
    work = Work(weight_bytes=6.0, state_bytes=2.0, flops=30.0)
    assert work.seconds(bytes_per_second=2.0, flops_per_second=10.0) == 4.0
    assert work.seconds(bytes_per_second=8.0, flops_per_second=10.0) == 3.0
    assert replace(work, flops=100.0).seconds(2.0, 10.0) == 10.0
