"""A small untrained Base checkpoint, as a folder in the official format.

It contains all parts of a Base checkpoint, including the encoders, so that voices can be cloned,
blended and spoken without a download. Its speech is noise. Text ids and tokenizer are the demo
voice's; each part of the model asks for the tensors that it needs, so none is listed here.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from realtime_tts import demo_voice
from realtime_tts.checkpoint import ignore_progress
from realtime_tts.errors import ConfigError
from realtime_tts.model.config_files import read_config
from realtime_tts.model.encoder_config import read_speaker_encoder, read_speech_encoder
from realtime_tts.model.random_weights import STORED, RandomWeights
from realtime_tts.model.speaker_encoder import SpeakerEncoder
from realtime_tts.model.speech_encoder import SpeechEncoder
from realtime_tts.model.speech_model import build_model

SECONDS = 5
"""Seconds of the longest utterance: noise seldom ends by itself."""
_FRAMES_PER_SECOND = 12.5
_COPIED = (
    "merges.txt",
    "vocab.json",
    "tokenizer_config.json",
    "preprocessor_config.json",
    "speech_tokenizer/config.json",
    "speech_tokenizer/preprocessor_config.json",
)
_LAYERS = 2
"""Layers of the talker: few, so that the checkpoint is quick to write and to load."""
_SPEAKER_ENCODER = {
    "sample_rate": 24_000,
    "enc_channels": [64, 64, 64, 64, 192],
    "enc_attention_channels": 32,
    "enc_se_channels": 32,
}
_README = f"""\
# Random weights

A Base checkpoint of Qwen3-TTS's format and of small dimensions, with random weights: it is for
trying how voices are cloned, blended and managed. Whatever it speaks is noise, of {SECONDS} seconds
at most.
"""


def write_random_checkpoint(folder: Path) -> None:
    """Write the checkpoint into a folder that is empty or does not exist. Raises ConfigError,
    CheckpointError where the demo voice is not installed, OSError."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file: name a folder to write the checkpoint into")
    if folder.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty: name a new folder to write the checkpoint into")
    demo = demo_voice.folder()
    (folder / "speech_tokenizer").mkdir(parents=True, exist_ok=True)
    for name in _COPIED:
        shutil.copyfile(demo / name, folder / name)
    _write_json(folder / "config.json", _config(_read_json(demo / "config.json")))
    most = {"max_new_tokens": round(SECONDS * _FRAMES_PER_SECOND) + 1}
    generation = _read_json(demo / "generation_config.json") | most
    _write_json(folder / "generation_config.json", generation)
    (folder / "README.md").write_text(_README, encoding="utf-8")
    _write_weights(folder)


def _config(demo: dict[str, Any]) -> dict[str, Any]:
    """Return the demo voice's config.json changed to a Base checkpoint's. It has a family of its
    own, so that its voices are never taken for those of a release."""
    trained = "alignment_heads", "silent_start"
    config = {name: value for name, value in demo.items() if name not in trained}
    talker = config["talker_config"] | {"num_hidden_layers": _LAYERS}
    talker |= {"spk_id": {}, "spk_is_dialect": {}}
    return config | {
        "tts_model_type": "base",
        "tts_model_size": "random",
        "random_weights": True,
        "talker_config": talker,
        "speaker_encoder_config": _SPEAKER_ENCODER | {"enc_dim": talker["hidden_size"]},
    }


class _Kept(RandomWeights):
    """Keeps every tensor that is taken, in the precision in which it has to be stored."""

    def __init__(self, stored: torch.dtype) -> None:
        super().__init__(device=torch.device("cpu"), dtype=torch.float32, stored=stored)
        self.tensors: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int, keep_dtype: bool = False) -> Tensor:
        tensor = super().take(name, *shape, keep_dtype=keep_dtype)
        self.tensors[name] = tensor.to(self._stored, copy=True)
        return tensor


def _write_weights(folder: Path) -> None:
    model, codec = _Kept(STORED), _Kept(torch.float32)
    build_model(read_config(folder), model, codec, torch.float32, ignore_progress)
    SpeakerEncoder(read_speaker_encoder(folder), model)
    SpeechEncoder(read_speech_encoder(folder), codec)
    for place, weights in ((folder, model), (folder / "speech_tokenizer", codec)):
        save_file(weights.tensors, place / "model.safetensors", metadata={"format": "pt"})


def _read_json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _write_json(path: Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
