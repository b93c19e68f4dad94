"""Untrained weights: the released dimensions, repeatable tensors, turns of a fixed length."""

from pathlib import Path

import pytest
import torch

from realtime_tts.model import SpeechModel
from realtime_tts.model.code_predictor import CodePredictor
from realtime_tts.model.codec import CodecDecoder
from realtime_tts.model.config import ModelConfig
from realtime_tts.model.config_files import read_config
from realtime_tts.model.random_weights import SIZES, RandomWeights, random_model, released_config
from realtime_tts.model.talker import Talker

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def tiny(parity: Path) -> ModelConfig:
    return read_config(parity / "tiny-custom_voice")


@pytest.mark.parametrize(("size", "elements"), [("1.7B", 1_916_676_352), ("0.6B", 905_788_672)])
def test_the_released_dimensions_have_the_published_number_of_parameters(
    tiny: ModelConfig, size: str, elements: int
) -> None:
    config, place = released_config(size, tiny.text), torch.device("meta")
    main = RandomWeights(device=place, dtype=torch.bfloat16, stored=torch.bfloat16)
    width, groups = config.talker.transformer.hidden, config.talker.code_groups
    Talker(config.talker, main, place, torch.bfloat16)
    CodePredictor(config.predictor, width, groups, main, place, torch.bfloat16)
    codec = RandomWeights(device=place, dtype=torch.float32, stored=torch.float32)
    CodecDecoder(config.codec, codec, place)
    assert (sum(main.sizes.values()), sum(codec.sizes.values())) == (elements, 114_323_137)


def test_every_released_size_is_covered() -> None:
    assert set(SIZES) == {"1.7B", "0.6B"}


def weights(seed: int = 0, dtype: torch.dtype = torch.float32) -> RandomWeights:
    return RandomWeights(device=CPU, dtype=dtype, stored=torch.bfloat16, seed=seed)


def test_a_tensor_depends_on_its_name_and_the_seed_and_on_nothing_else() -> None:
    one, other = weights(), weights()
    other.take("b.weight", 4, 8)  # asked for in another order
    assert torch.equal(one.take("a.weight", 4, 8), other.take("a.weight", 4, 8))
    assert not torch.equal(one.take("a.weight", 4, 8), one.take("b.weight", 4, 8))
    assert not torch.equal(one.take("a.weight", 4, 8), weights(1).take("a.weight", 4, 8))


def test_values_are_those_that_the_stored_precision_holds() -> None:
    tensor = weights().take("a.weight", 16, 16)
    assert tensor.dtype is torch.float32
    assert torch.equal(tensor, tensor.bfloat16().float())
    assert weights().take("t.weight", 2, 2, keep_dtype=True).dtype is torch.bfloat16


def test_norms_change_nothing_and_biases_add_nothing() -> None:
    assert (weights().take("x.input_layernorm.weight", 5) == 1).all()
    assert (weights().take("x.bias", 5) == 0).all()


@pytest.fixture(scope="module")
def noise(tiny: ModelConfig) -> SpeechModel:
    return random_model(tiny, frames=6)


@torch.inference_mode()
def ends_after(model: SpeechModel, seed: int, most: int) -> int:
    """Frames of one utterance that would love to end: every other first code is forbidden."""
    state, eos = model.new_state(1), model.config.talker.eos_id
    state.begin(0, model.default_sampling, seed)
    logits = torch.full((1, model.config.talker.vocab), -50.0)
    logits[:, eos] = 50.0
    for frame in range(most):
        if state.sampling.first_codes(logits, [0])[0].item() == eos:
            return frame
    return most


def test_end_of_speech_is_never_drawn_before_the_fixed_length(noise: SpeechModel) -> None:
    assert [ends_after(noise, seed, 20) for seed in range(5)] == [6] * 5
    assert noise.max_frames == 6


def test_a_model_with_random_weights_says_so_and_makes_finite_audible_noise(
    noise: SpeechModel, model: SpeechModel
) -> None:
    assert noise.config.random_weights and not model.config.random_weights
    state = noise.new_state(1)
    state.begin(0, noise.default_sampling, 3)
    hidden = torch.zeros(1, noise.config.talker.transformer.hidden)
    codes = torch.stack([noise.frame(hidden, [0], state).codes for _ in range(4)], 1)
    samples = noise.codec.decode(codes, [0], state.codec)
    assert samples.isfinite().all()
    assert 0.006 < samples.abs().max() <= 1.0
