"""An engine with random weights, to measure a machine that has no checkpoint.

Its text tokenizer is the demo voice's, its turns all have the same length, and its name says what
it is wherever a model's name is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from realtime_tts import demo_voice
from realtime_tts.engine.interface import Progress
from realtime_tts.engine.make import make_engine
from realtime_tts.engine.memory import KVMemory
from realtime_tts.engine.model_engine import ModelEngine
from realtime_tts.engine.torch_setup import prepare_torch
from realtime_tts.errors import ConfigError
from realtime_tts.model.config import ModelConfig
from realtime_tts.model.config_files import read_config
from realtime_tts.model.random_weights import random_model
from realtime_tts.model.released import SIZES, released_config
from realtime_tts.text.tokenizer import Qwen2Tokenizer

Dimensions = Mapping[str, Callable[[ModelConfig], ModelConfig]]
"""Functions by name that make another configuration of the demo voice's, with its text ids."""


def _released(size: str) -> Callable[[ModelConfig], ModelConfig]:
    return lambda demo: released_config(size, demo.text)


DIMENSIONS: Dimensions = {size: _released(size) for size in SIZES} | {"demo": lambda demo: demo}


def load_random(
    size: str,
    *,
    name: str,
    slots: int,
    device: str,
    dtype: str,
    threads: int | None,
    frames: int,
    progress: Progress,
    kv_memory: KVMemory | None = None,
    dimensions: Dimensions = DIMENSIONS,
) -> ModelEngine:
    """An engine of these dimensions whose turns have `frames` frames each.

    Raises ConfigError for an unknown size or a device that is not there or too small.
    """
    if size not in dimensions:
        raise ConfigError(f"random weights come as {', '.join(dimensions)}; got {size!r}")
    prepare_torch(device, threads)
    config = dimensions[size](read_config(demo_voice.FOLDER))
    model = random_model(
        config,
        name=name,
        device=device,
        dtype=getattr(torch, dtype),
        frames=frames,
        progress=progress,
    )
    tokenizer = Qwen2Tokenizer.from_folder(demo_voice.FOLDER)
    return make_engine(model, tokenizer, name=name, slots=slots, kv_memory=kv_memory)
