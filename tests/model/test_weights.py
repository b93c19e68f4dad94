"""Tensors that are missing, misshaped, of the wrong type or too many are named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from realtime_tts.errors import CheckpointError
from realtime_tts.model import load_model
from realtime_tts.model.weights import stored_dtype

Change = Callable[[dict[str, Tensor]], None]

NORM = "talker.model.norm.weight"
HEAD = "talker.codec_head.weight"


def rewrite(path: Path, change: Change) -> None:
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)


def shard(folder: Path, count: int) -> None:
    """Split model.safetensors into shards with an index, as large checkpoints are."""
    whole = folder / "model.safetensors"
    tensors = load_file(whole)
    whole.unlink()
    names = sorted(tensors)
    weight_map: dict[str, str] = {}
    for index in range(count):
        file = f"model-{index + 1:05}-of-{count:05}.safetensors"
        part = names[index::count]
        save_file({name: tensors[name] for name in part}, folder / file)
        weight_map |= dict.fromkeys(part, file)
    index_file = folder / "model.safetensors.index.json"
    index_file.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop(NORM), rf"1 tensors.*\n  {NORM}: missing, expected \[128\]"),
        (
            lambda t: t.update({HEAD: torch.zeros(1280, 96)}),
            rf"{HEAD}: expected shape \[1280, 128\], found \[1280, 96\]",
        ),
        (
            lambda t: t.update({NORM: torch.zeros(128, dtype=torch.int32)}),
            rf"{NORM}: expected dtype F32, BF16, F16, found I32",
        ),
        (lambda t: t.update({"talker.extra": torch.zeros(1)}), "talker.extra: unexpected"),
        (lambda t: t.clear(), "and [0-9]+ more"),
    ],
    ids=["missing", "shape", "dtype", "unexpected", "everything"],
)
def test_a_tensor_that_does_not_fit_is_named(
    change: Change, message: str, checkpoint_copy: Path
) -> None:
    rewrite(checkpoint_copy / "model.safetensors", change)
    with pytest.raises(CheckpointError, match=message):
        load_model(checkpoint_copy)


def test_all_problems_are_reported_at_once(checkpoint_copy: Path) -> None:
    def change(tensors: dict[str, Tensor]) -> None:
        del tensors[NORM], tensors[HEAD]

    rewrite(checkpoint_copy / "model.safetensors", change)
    with pytest.raises(CheckpointError, match=rf"(?s)2 tensors.*{HEAD}.*{NORM}|{NORM}.*{HEAD}"):
        load_model(checkpoint_copy)


@pytest.mark.parametrize(
    ("file", "section", "key", "value", "message"),
    [
        ("config.json", "talker_config", "text_vocab_size", 1 << 24, r"expected shape \[16777216,"),
        (
            "config.json",
            "talker_config",
            "num_hidden_layers",
            1 << 24,
            r"missing, .*\n  and [0-9]+ m",
        ),
        ("speech_tokenizer/config.json", "decoder_config", "decoder_dim", 3, r"shape \[3, 64"),
    ],
)
def test_a_size_far_from_that_of_the_weights_is_refused_before_it_is_made(
    file: str, section: str, key: str, value: int, message: str, checkpoint_copy: Path
) -> None:
    path = checkpoint_copy / file
    config = json.loads(path.read_text())
    config[section][key] = value
    path.write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=rf"(?s)do not fit its config.json.*{message}"):
        load_model(checkpoint_copy)


def test_a_codec_tensor_that_does_not_fit_is_named(checkpoint_copy: Path) -> None:
    name = "decoder.pre_conv.conv.bias"
    path = checkpoint_copy / "speech_tokenizer" / "model.safetensors"
    rewrite(path, lambda tensors: tensors.update({name: torch.zeros(63)}))
    with pytest.raises(CheckpointError, match=rf"{name}: expected shape \[64\], found \[63\]"):
        load_model(checkpoint_copy)


def test_encoders_may_be_there_or_not(checkpoint_copy: Path) -> None:
    def strip(tensors: dict[str, Tensor]) -> None:
        for name in [name for name in tensors if name.startswith("encoder.")]:
            del tensors[name]

    rewrite(checkpoint_copy / "speech_tokenizer" / "model.safetensors", strip)
    rewrite(
        checkpoint_copy / "model.safetensors",
        lambda tensors: tensors.update({"speaker_encoder.fc.weight": torch.zeros(2, 2)}),
    )
    load_model(checkpoint_copy)


def test_shards_are_one_checkpoint(checkpoint_copy: Path, parity: Path) -> None:
    shard(checkpoint_copy, 3)
    sharded, whole = load_model(checkpoint_copy), load_model(parity / "tiny-custom_voice")
    hidden = torch.randn(2, 128, generator=torch.Generator().manual_seed(0))
    assert torch.equal(sharded.talker.logits(hidden), whole.talker.logits(hidden))
    assert torch.equal(sharded.predictor.embedding, whole.predictor.embedding)


@pytest.mark.parametrize("shards", [1, 3])
def test_the_precision_of_a_checkpoint_is_that_of_most_of_its_numbers(
    shards: int, checkpoint_copy: Path
) -> None:
    def change(tensors: dict[str, Tensor]) -> None:
        rest = {NORM: tensors[NORM].bfloat16(), "step": torch.zeros(10**6, dtype=torch.int32)}
        tensors.update({name: tensor.half() for name, tensor in tensors.items()} | rest)

    assert stored_dtype(checkpoint_copy) is torch.bfloat16
    rewrite(checkpoint_copy / "model.safetensors", change)
    if shards > 1:
        shard(checkpoint_copy, shards)
    assert stored_dtype(checkpoint_copy) is torch.float16


def test_a_missing_shard_is_named(checkpoint_copy: Path) -> None:
    shard(checkpoint_copy, 2)
    (checkpoint_copy / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(CheckpointError, match="names model-00002-of-00002.safetensors, which is"):
        load_model(checkpoint_copy)


@pytest.mark.parametrize("name", ["../elsewhere.safetensors", "model.bin", 1])
def test_an_index_points_to_safetensors_beside_it_only(name: object, checkpoint_copy: Path) -> None:
    (checkpoint_copy / "model.safetensors").unlink()
    index = checkpoint_copy / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {NORM: name, HEAD: "model.bin"}}))
    with pytest.raises(CheckpointError, match="not a safetensors file beside it"):
        load_model(checkpoint_copy)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth", "last.ckpt"])
def test_pickled_weights_are_refused_by_name(name: str, checkpoint_copy: Path) -> None:
    (checkpoint_copy / "model.safetensors").rename(checkpoint_copy / name)
    with pytest.raises(CheckpointError, match=rf"only as {name}; .* only safetensors"):
        load_model(checkpoint_copy)


def test_no_weights_at_all_are_noticed(checkpoint_copy: Path) -> None:
    (checkpoint_copy / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="neither model.safetensors nor"):
        load_model(checkpoint_copy)


@pytest.mark.parametrize("content", [b"", b"not safetensors at all", b"\xff" * 64])
def test_a_damaged_file_is_named(content: bytes, checkpoint_copy: Path) -> None:
    (checkpoint_copy / "model.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model\.safetensors is not a readable"):
        load_model(checkpoint_copy)


@pytest.mark.parametrize("part", ["model.safetensors", "speech_tokenizer/model.safetensors"])
def test_a_git_lfs_pointer_in_place_of_weights_is_told_from_damage(
    part: str, checkpoint_copy: Path
) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 3833402552\n"
    (checkpoint_copy / part).write_text(pointer)
    with pytest.raises(CheckpointError, match=rf"{part} is a git-lfs pointer.*`git lfs pull` in"):
        load_model(checkpoint_copy)


def test_a_damaged_index_is_named(checkpoint_copy: Path) -> None:
    (checkpoint_copy / "model.safetensors").unlink()
    (checkpoint_copy / "model.safetensors.index.json").write_text("[]")
    with pytest.raises(CheckpointError, match="is not an index of safetensors"):
        load_model(checkpoint_copy)
