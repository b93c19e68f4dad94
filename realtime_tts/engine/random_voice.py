"""An engine with random weights, to measure a machine that has no checkpoint.

Its text tokenizer is the demo voice's, its turns all have the same length, and its name says what
it is wherever a model's name is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from realtime_tts import demo_voice
from realtime_tts.engine.interface import Progress
from realtime_tts.engine.make import make_engine
from realtime_tts.engine.model_engine import ModelEngine
from realtime_tts.engine.settings import RANDOM_FRAMES, EngineConfig
from realtime_tts.engine.torch_setup import chosen_dtype, prepare_torch
from realtime_tts.model.config import ModelConfig
from realtime_tts.model.config_files import read_config
from realtime_tts.model.random_weights import SIZES, STORED, random_model, released_config
from realtime_tts.text.tokenizer import Qwen2Tokenizer

Dimensions = Mapping[str, Callable[[ModelConfig], ModelConfig]]
"""Functions by name that make another configuration of the demo voice's, with its text ids."""


def _released(size: str) -> Callable[[ModelConfig], ModelConfig]:
    return lambda demo: released_config(size, demo.text)


DIMENSIONS: Dimensions = {size: _released(size) for size in SIZES} | {"demo": lambda demo: demo}


def load_random(
    config: EngineConfig, progress: Progress, dimensions: Dimensions = DIMENSIONS
) -> ModelEngine:
    """An engine of the dimensions that `random_weights` names, whose turns have `max_frames` frames
    each; "auto" and memory mean what they mean for a released checkpoint.

    Raises ConfigError for a device that is not there or too small.
    """
    assert config.random_weights is not None, "no random weights were asked for"
    prepare_torch(config.device, config.threads)
    model = random_model(
        dimensions[config.random_weights](read_config(demo_voice.FOLDER)),
        name=config.name,
        device=config.device,
        dtype=chosen_dtype(config.dtype, config.device, lambda: STORED),
        frames=config.max_frames or RANDOM_FRAMES,
        progress=progress,
    )
    return make_engine(
        model,
        Qwen2Tokenizer.from_folder(demo_voice.FOLDER),
        name=config.name,
        slots=config.scheduler.slots,
        fit_slots=config.fit_slots,
        gpu_memory=config.memory,
        eager=config.eager,
    )
