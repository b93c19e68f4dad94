"""Which engine a model gets: captured programs on a GPU, plain modules on a CPU.

The model is a checkpoint's, or has random weights, for measuring a machine without a checkpoint.
Then the text tokenizer is the demo voice's, all turns have the same length, and the model's name
says so wherever it is shown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

import torch

from realtime_tts import demo_voice
from realtime_tts.engine.captured_engine import LONGEST_PROMPT, CapturedEngine
from realtime_tts.engine.interface import Progress
from realtime_tts.engine.memory import CONTEXT_BYTES, Footprint, MemoryBudget, plan_memory
from realtime_tts.engine.model_engine import ModelEngine
from realtime_tts.engine.settings import RANDOM_FRAMES, EngineConfig
from realtime_tts.engine.spoken_as import no_voices
from realtime_tts.engine.torch_engine import TorchEngine
from realtime_tts.engine.torch_setup import chosen_dtype, prepare_torch
from realtime_tts.kernels import triton_available
from realtime_tts.logs import event
from realtime_tts.model import (
    SpeechModel,
    Variant,
    VoiceLookup,
    find_checkpoint,
    load_model,
    load_voice,
)
from realtime_tts.model.codec_gemm_state import RingShape
from realtime_tts.model.config import ModelConfig
from realtime_tts.model.config_files import read_config
from realtime_tts.model.encoder_config import cloning_obstacle
from realtime_tts.model.paged_cache import position_bytes
from realtime_tts.model.random_weights import SIZES, STORED, random_model, released_config
from realtime_tts.model.weights import stored_dtype
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from realtime_tts.voices.loaded import LoadedVoices
from realtime_tts.voices.stored import open_registry

log = logging.getLogger(__name__)


def load_engine(config: EngineConfig, progress: Progress) -> ModelEngine:
    """Find (and if necessary download) the checkpoint and load it.

    Raises CheckpointError for a checkpoint that cannot be found, read or served, ConfigError for a
    device that is not there, cannot be used or has too little memory.
    """
    prepare_torch(config.device, config.threads)
    folder = find_checkpoint(config.checkpoint, progress)
    dtype = chosen_dtype(config.dtype, config.device, partial(stored_dtype, folder))
    model = load_model(folder, device=config.device, dtype=dtype, progress=progress)
    voices = no_voices
    if config.voices_dir is not None:
        voices = LoadedVoices(open_registry(config.voices_dir), load_voice)
        if model.config.variant is Variant.BASE and (reason := cloning_obstacle(folder)):
            event(log, logging.WARNING, "engine.cannot_clone", model=config.name, reason=reason)
    return make_engine(config, model, Qwen2Tokenizer.from_folder(folder), voices)


def make_engine(
    config: EngineConfig,
    model: SpeechModel,
    tokenizer: Qwen2Tokenizer,
    voices: VoiceLookup = no_voices,
) -> ModelEngine:
    """Return the engine for the device that the model is on. Raises ConfigError."""
    device, dtype, slots = model.talker.device, model.talker.dtype, config.scheduler.slots
    name, max_frames = config.name, config.max_frames
    if config.eager or device.type != "cuda":
        return TorchEngine(
            model, tokenizer, name=name, slots=slots, max_frames=max_frames, voices=voices
        )
    free, total = _left(device, config.memory)
    needs = footprint(model.config, dtype, max_frames or model.max_frames)
    plan = plan_memory(needs, free, total, slots, fit=config.fit_slots)
    # More positions than all slots can fill would be unused.
    most = plan.slots * model.config.talker.transformer.max_positions
    positions = min(most, plan.kv_bytes // needs.position)
    event(
        log,
        logging.INFO,
        "engine.memory",
        device=str(device),
        total=total,
        free=free,
        slots=plan.slots,
        kv_bytes=plan.kv_bytes,
        kv_positions=positions,
    )
    if not triton_available():
        reason = "Triton is not installed; it comes with builds of torch for CUDA"
        event(log, logging.WARNING, "engine.fallback", what="plain torch operations", reason=reason)
    return CapturedEngine(
        model,
        tokenizer,
        name=name,
        slots=plan.slots,
        kv_positions=positions,
        voices=voices,
        max_frames=max_frames,
    )


def _left(device: torch.device, budget: MemoryBudget | None) -> tuple[int, int]:
    """Return the free and the total bytes of the GPU, or of the engine's budget, to which torch is
    limited from now on. Raises ConfigError."""
    free, total = torch.cuda.mem_get_info(device)
    if budget is None:
        return free, total
    limit = budget.bytes_of(total)
    for_torch = max(0, limit - CONTEXT_BYTES)
    torch.cuda.empty_cache()  # free the memory that only loading needed
    with torch.cuda.device(device):  # which may be "cuda", without a number
        torch.cuda.set_per_process_memory_fraction(for_torch / total)
    return min(free, for_torch - torch.cuda.memory_reserved(device)), limit


def footprint(config: ModelConfig, dtype: torch.dtype, max_frames: int) -> Footprint:
    """Return the GPU memory that turns take, with talker, code predictor and codec in `dtype`."""
    talker, predictor, codec = (
        config.talker.transformer,
        config.predictor.transformer,
        config.codec.transformer,
    )
    ring = RingShape(codec.layers, codec.heads, codec.head_dim, config.codec.window)
    codec_values = 2 * ring.layers * ring.heads * ring.frames * ring.head_dim
    taps = codec_values // 4  # 0.54 of 2.6 MB in the released codec
    frame = 2 * predictor.layers * predictor.kv_heads * predictor.head_dim
    slot = codec_values + taps + frame * config.talker.code_groups
    longest = min(max_frames + LONGEST_PROMPT, talker.max_positions)
    return Footprint(position_bytes(talker, dtype), slot * dtype.itemsize, longest)


Dimensions = Mapping[str, Callable[[ModelConfig], ModelConfig]]
"""Functions by name that derive a configuration from the demo voice's, with its text ids."""


def _released(size: str) -> Callable[[ModelConfig], ModelConfig]:
    return lambda demo: released_config(size, demo.text)


DIMENSIONS: Dimensions = {size: _released(size) for size in SIZES} | {"demo": lambda demo: demo}


def load_random(
    config: EngineConfig, progress: Progress, dimensions: Dimensions = DIMENSIONS
) -> ModelEngine:
    """Return an engine with random weights of the dimensions that `random_weights` names. Turns
    have `max_frames` frames each; "auto" and memory mean the same as for a released checkpoint.

    Raises ConfigError for a device that is not there or too small.
    """
    assert config.random_weights is not None, "no random weights were asked for"
    prepare_torch(config.device, config.threads)
    model = random_model(
        dimensions[config.random_weights](read_config(demo_voice.folder())),
        device=config.device,
        dtype=chosen_dtype(config.dtype, config.device, lambda: STORED),
        frames=config.max_frames or RANDOM_FRAMES,
        progress=progress,
    )
    return make_engine(config, model, Qwen2Tokenizer.from_folder(demo_voice.folder()))
