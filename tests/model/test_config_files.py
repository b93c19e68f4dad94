"""Configurations: what is read from them, and what is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from realtime_tts.errors import CheckpointError
from realtime_tts.model.config_files import read_config
from realtime_tts.sampling import Sampling


def edit(path: Path, keys: str, value: Any) -> None:
    """Set a nested key, "a.b.c"; DELETE removes it."""
    whole = json.loads(path.read_text())
    *parents, last = keys.split(".")
    section = whole
    for key in parents:
        section = section[key]
    if value is DELETE:
        del section[last]
    else:
        section[last] = value
    path.write_text(json.dumps(whole))


DELETE = object()


def test_names_and_ids_come_from_the_files(parity: Path) -> None:
    config = read_config(parity / "tiny-custom_voice")
    assert config.talker.eos_id == 358
    assert config.text.tts_pad == 606
    assert len(config.languages) == 10 and "beijing_dialect" not in config.languages
    assert config.talker.dialects == {"eric": "sichuan_dialect", "dylan": "beijing_dialect"}
    assert config.codec.window == 8
    assert config.follows_instructions


def test_generation_defaults_come_from_their_file(checkpoint_copy: Path) -> None:
    path = checkpoint_copy / "generation_config.json"
    defaults = read_config(checkpoint_copy).generation
    assert (defaults.sampling, defaults.max_new_tokens) == (Sampling(), 8192)
    edit(path, "do_sample", False)
    edit(path, "subtalker_top_k", 7)
    defaults = read_config(checkpoint_copy).generation
    assert (defaults.sampling.temperature, defaults.sampling.predictor.top_k) == (0.0, 7)
    edit(path, "top_p", 1.5)
    with pytest.raises(CheckpointError, match=r"generation_config.*top_p"):
        read_config(checkpoint_copy)
    path.unlink()
    assert read_config(checkpoint_copy).generation.max_new_tokens == 2048


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        ("model_type", "qwen3", "model_type is 'qwen3', this server supports only 'qwen3_tts'"),
        ("tts_model_type", "singing", "'singing', this server knows: custom_voice, voice_d"),
        ("tts_model_type", DELETE, "tts_model_type must be of type str, got None"),
        ("tokenizer_type", "qwen3_tts_tokenizer_25hz", "'qwen3_tts_tokenizer_25hz', this serv"),
        ("talker_config.hidden_act", "gelu", "hidden_act is 'gelu'"),
        ("talker_config.attention_bias", True, "attention_bias is True, which is not"),
        ("talker_config.use_sliding_window", True, "use_sliding_window is True"),
        ("talker_config.rope_scaling", {"rope_type": "yarn"}, "type 'yarn' is not supported"),
        ("talker_config.hidden_size", "128", "talker_config: hidden_size must be of type int"),
        ("talker_config.vocab_size", True, "vocab_size must be of type int, got True"),
        ("talker_config.num_hidden_layers", -1, "num_hidden_layers must be more than 0 and at"),
        ("talker_config.head_dim", 10**12, "head_dim must be .* at most 16777216, got 10{12}$"),
        ("talker_config.rope_theta", 10**400, "rope_theta must be of type float"),
        ("talker_config.rms_norm_eps", float("nan"), "rms_norm_eps must be more than 0 .* got nan"),
        ("talker_config.rope_scaling", "default", "rope_scaling must be an object, got 'default'"),
        ("talker_config.code_predictor_config", None, "code_predictor_config must be an object"),
        ("talker_config.num_code_groups", 12, "num_quantizers should be 12, found 16"),
        ("talker_config.code_predictor_config.vocab_size", 99, "codebook_size should be 99"),
        ("talker_config.spk_is_dialect.ryan", "swabian", "'ryan' speaks 'swabian', which has no"),
        ("im_start_token_id", DELETE, "im_start_token_id must be an id .*, 0 to 639, got None"),
        ("tts_pad_token_id", 1_000_000, r"json: tts_pad_token_id must .* got 1000000: correct it"),
        ("tts_bos_token_id", 640, "0 to 639, got 640"),
        ("talker_config.codec_pad_id", -1, "codec_pad_id must be an id .*, 0 to 1279, got -1"),
        ("talker_config.codec_think_id", 7.0, "codec_think_id must be an id .*, got 7.0"),
        ("talker_config.spk_id.ryan", 99999, r"talker_config: spk_id: ryan must .* got 99999: c"),
        ("talker_config.spk_id.ryan", [300], r"spk_id: ryan must .* got \[300\]: correct it"),
        ("talker_config.codec_language_id.english", True, "_id: english must .* got True"),
    ],
)
def test_what_cannot_run_is_refused_by_name(
    keys: str, value: Any, message: str, checkpoint_copy: Path
) -> None:
    edit(checkpoint_copy / "config.json", keys, value)
    with pytest.raises(CheckpointError, match=message):
        read_config(checkpoint_copy)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        ("model_type", "mimi", "model_type is 'mimi'"),
        ("output_sample_rate", 16000, "supports only 24000"),
        ("decoder_config.upsample_rates", [8, 5, 4], "upsample rates should be 1920, found 640"),
        ("decoder_config.upsample_rates", "8", "must be a list of integers"),
        ("decoder_config.upsample_rates", [-8, 5, -4, 3], "must be a list of integers, 1 to"),
        ("decoder_config.num_semantic_quantizers", 2, "num_semantic_quantizers is 2"),
    ],
)
def test_a_codec_that_cannot_run_is_refused_by_name(
    keys: str, value: Any, message: str, checkpoint_copy: Path
) -> None:
    edit(checkpoint_copy / "speech_tokenizer" / "config.json", keys, value)
    with pytest.raises(CheckpointError, match=message):
        read_config(checkpoint_copy)


def test_a_folder_that_is_no_checkpoint_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config\.json is missing: is .* checkpoint folder"):
        read_config(tmp_path)


@pytest.mark.parametrize("content", ["", "[1]", "{", "[" * 100_000], ids=range(4))
def test_a_damaged_file_is_named(content: str, checkpoint_copy: Path) -> None:
    (checkpoint_copy / "config.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        read_config(checkpoint_copy)


def test_alignment_heads_are_read_and_may_be_left_out(checkpoint_copy: Path) -> None:
    assert read_config(checkpoint_copy).alignment_heads == ()
    add(checkpoint_copy, "alignment_heads", [[1, 0], [0, 3]])
    assert read_config(checkpoint_copy).alignment_heads == ((1, 0), (0, 3))


@pytest.mark.parametrize(
    "wrong",
    [[[3, 0]], [[0, 4]], [[-1, 0]], [[0]], [0, 1], "0,1", [[0, 1], [0, 1]], [[True, 1]], {}],
)
def test_alignment_heads_that_the_talker_does_not_have_are_refused(
    checkpoint_copy: Path, wrong: Any
) -> None:
    """It has three layers of four heads."""
    add(checkpoint_copy, "alignment_heads", wrong)
    with pytest.raises(CheckpointError, match=r"layers 0 to 2 and heads 0 to 3") as error:
        read_config(checkpoint_copy)
    assert "leave the field out" in str(error.value)


def test_a_silent_start_is_read_and_may_be_left_out(checkpoint_copy: Path) -> None:
    config = read_config(checkpoint_copy)
    assert config.silent_start == ()
    frames = [[code] * config.talker.code_groups for code in (0, config.codec.codebook_size - 1)]
    add(checkpoint_copy, "silent_start", frames)
    assert read_config(checkpoint_copy).silent_start == tuple(map(tuple, frames))


@pytest.mark.parametrize("wrong", [[[1]], [[0] * 15 + [10**6]], [[-1] * 16], [0] * 16, "x", {}])
def test_a_silent_start_that_is_none_is_refused(checkpoint_copy: Path, wrong: Any) -> None:
    add(checkpoint_copy, "silent_start", wrong)
    with pytest.raises(CheckpointError, match=r"silent_start must be a list of frames") as error:
        read_config(checkpoint_copy)
    assert "leave the field out" in str(error.value)


def add(folder: Path, key: str, value: Any) -> None:
    edit(folder / "config.json", key, value)
