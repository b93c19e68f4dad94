"""Which engine a model gets: captured programs on a GPU, plain modules on a CPU."""

from __future__ import annotations

import logging

import torch

from realtime_tts.engine.captured_engine import CapturedEngine
from realtime_tts.engine.interface import Progress
from realtime_tts.engine.memory import KVMemory
from realtime_tts.engine.model_engine import ModelEngine
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.engine.spoken_as import no_voices
from realtime_tts.engine.torch_engine import TorchEngine
from realtime_tts.engine.torch_setup import prepare_torch
from realtime_tts.logs import event
from realtime_tts.model import SpeechModel, VoiceLookup, find_checkpoint, load_model, load_voice
from realtime_tts.model.paged_cache import position_bytes
from realtime_tts.text.tokenizer import Qwen2Tokenizer
from realtime_tts.voices.loaded import LoadedVoices
from realtime_tts.voices.registry import Registry

log = logging.getLogger(__name__)


def load_engine(config: EngineConfig, progress: Progress) -> ModelEngine:
    """Find (and if need be download) the checkpoint and load it.

    Raises CheckpointError for what cannot be found, read or served, ConfigError for a device that
    is not there or has too little memory.
    """
    prepare_torch(config.device, config.threads)
    folder = find_checkpoint(config.checkpoint, progress)
    dtype = getattr(torch, config.dtype)
    model = load_model(folder, device=config.device, dtype=dtype, progress=progress)
    voices = no_voices
    if config.voices_dir is not None:
        voices = LoadedVoices(Registry(config.voices_dir), load_voice)
    return make_engine(
        model,
        Qwen2Tokenizer.from_folder(folder),
        name=config.name,
        slots=config.scheduler.slots,
        max_frames=config.max_frames,
        kv_memory=config.memory,
        voices=voices,
    )


def make_engine(
    model: SpeechModel,
    tokenizer: Qwen2Tokenizer,
    *,
    name: str,
    slots: int,
    max_frames: int | None = None,
    kv_memory: KVMemory | None = None,
    voices: VoiceLookup = no_voices,
) -> ModelEngine:
    """The engine for the device that the model is on. Raises ConfigError."""
    device = model.talker.device
    if device.type != "cuda":
        return TorchEngine(
            model, tokenizer, name=name, slots=slots, max_frames=max_frames, voices=voices
        )
    shape = model.config.talker.transformer
    free, total = torch.cuda.mem_get_info(device)
    size = (kv_memory or KVMemory()).bytes_of(free, total)
    # More than every slot can fill is of no use.
    most = slots * shape.max_positions
    positions = min(most, size // position_bytes(shape, model.talker.dtype))
    event(log, logging.INFO, "engine.kv_memory", bytes=size, positions=positions)
    return CapturedEngine(
        model,
        tokenizer,
        name=name,
        slots=slots,
        kv_positions=positions,
        voices=voices,
        max_frames=max_frames,
    )
