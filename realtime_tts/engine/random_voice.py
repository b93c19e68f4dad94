"""An engine with random weights, to measure a machine that has no checkpoint.

Its text tokenizer is the demo voice's, its turns all have the same length, and its name says what
it is wherever a model's name is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from realtime_tts import demo_voice
from realtime_tts.engine.interface import Progress
from realtime_tts.engine.make import make_engine
from realtime_tts.engine.memory import MemoryBudget
from realtime_tts.engine.model_engine import ModelEngine
from realtime_tts.engine.torch_setup import chosen_dtype, prepare_torch
from realtime_tts.errors import ConfigError
from realtime_tts.model.config import ModelConfig
from realtime_tts.model.config_files import read_config
from realtime_tts.model.random_weights import STORED, random_model
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
    fit_slots: bool = False,
    gpu_memory: MemoryBudget | None = None,
    eager: bool = False,
    dimensions: Dimensions = DIMENSIONS,
) -> ModelEngine:
    """An engine of these dimensions whose turns have `frames` frames each; the settings are those
    of `EngineConfig`, and "auto" and memory mean what they mean for a released checkpoint.

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
        dtype=chosen_dtype(dtype, device, lambda: STORED),
        frames=frames,
        progress=progress,
    )
    tokenizer = Qwen2Tokenizer.from_folder(demo_voice.FOLDER)
    return make_engine(
        model,
        tokenizer,
        name=name,
        slots=slots,
        fit_slots=fit_slots,
        gpu_memory=gpu_memory,
        eager=eager,
    )
