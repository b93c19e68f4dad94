"""Loads what an EngineConfig describes: the engine, its tokenizer, its voices.

The front calls these functions and passes the results on. torch is imported where an engine, or
what encodes voices, is loaded: in the engine's own process or thread, and nowhere if the engine is
a fake.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from realtime_tts import demo_voice
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.interface import Engine, Progress, no_voice
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.errors import CheckpointError
from realtime_tts.text.tokenizer import LoadTokenizer, Qwen2Tokenizer
from realtime_tts.voices.audio import Recording
from realtime_tts.voices.file import write_voice
from realtime_tts.voices.form import NewVoice
from realtime_tts.voices.maker import SILENCE_SECONDS, VoiceMaker, load_fake
from realtime_tts.voices.stored import open_registry

if TYPE_CHECKING:
    from realtime_tts.engine.models import FamilyOf
    from realtime_tts.model.voice_encoder import VoiceEncoder
    from realtime_tts.voices.library import VoiceLibrary


def engine_loader(config: EngineConfig) -> Callable[[Progress], Engine]:
    """Return a function that builds the engine, which may take long."""
    return partial(_load_fake if config.kind == "fake" else _load_model, config)


def _load_fake(config: EngineConfig, progress: Progress) -> Engine:
    fake = FakeEngineConfig(
        slots=config.scheduler.slots,
        step_seconds=config.step_seconds,
        languages=("auto", "english", "chinese", "korean"),  # text in other scripts is left out
    )
    if config.max_frames is not None:
        fake = replace(fake, max_frames=config.max_frames)
    return FakeEngine(fake, registered=registered_voices(config))


def _load_model(config: EngineConfig, progress: Progress) -> Engine:
    if config.random_weights is None:  # report a wrong path before torch, which loads slowly
        from realtime_tts.checkpoint import expect_checkpoint, find_checkpoint

        expect_checkpoint(find_checkpoint(config.checkpoint, progress))
    from realtime_tts.engine.make import load_engine, load_random

    load = load_engine if config.random_weights is None else load_random
    return load(config, progress)


def load_tokenizer(config: EngineConfig) -> Qwen2Tokenizer:
    """Return the text tokenizer of the checkpoint. Raises CheckpointError."""
    if config.kind == "fake" or config.random_weights is not None:
        return Qwen2Tokenizer.from_folder(demo_voice.folder())
    from realtime_tts.checkpoint import find_checkpoint

    return Qwen2Tokenizer.from_folder(find_checkpoint(config.checkpoint))


def tokenizer_loaders(configs: Sequence[EngineConfig]) -> LoadTokenizer:
    """Return what loads the tokenizer of one checkpoint, or of each by the name of its model."""
    if len(configs) == 1:
        return partial(load_tokenizer, configs[0])
    return {config.model: partial(load_tokenizer, config) for config in configs}


def registered_voices(config: EngineConfig) -> Callable[[str], bool]:
    """Return a function that tells whether there is a registered voice of a name; it is cheap."""
    return no_voice if config.voices_dir is None else open_registry(config.voices_dir).has


def voice_families(config: EngineConfig) -> FamilyOf:
    """Return a function that gives the model of a registered voice by its name, or None."""
    if config.voices_dir is None:
        return lambda name: None
    registry = open_registry(config.voices_dir)

    def family(name: str) -> str | None:
        record = registry.find(name)
        return None if record is None else record.model

    return family


def voice_maker_loader(*configs: EngineConfig) -> Callable[[], VoiceMaker]:
    """Return a function for the voice worker that loads what encodes recordings: the encoder of the
    first Base checkpoint of these engines."""
    if configs[0].kind == "fake":
        return load_fake
    return partial(load_voice_maker, *(config.checkpoint for config in configs))


def voice_library(engines: Sequence[EngineConfig], fronts: int = 1) -> VoiceLibrary | None:
    """Return the registered voices that these engines share; None if they have none. Each of
    several `fronts` takes its share of the recordings at once."""
    folder = engines[0].voices_dir
    if folder is None:
        return None
    # Here, as an engine's process imports this module, too, and needs none of it.
    from realtime_tts.voices.encoding import WorkerLimits
    from realtime_tts.voices.library import VoiceLibrary

    limits = WorkerLimits(places=max(1, WorkerLimits().places // fronts))
    return VoiceLibrary(folder, voice_maker_loader(*engines), limits)


def _make_voice(encoder: VoiceEncoder, wanted: NewVoice, recording: Recording, path: Path) -> None:
    """Encode with the model's encoder: with that given, a `VoiceMaker`."""
    voice = encoder.encode(
        recording.samples,
        recording.sample_rate,
        transcript=wanted.text,
        silence=SILENCE_SECONDS if wanted.append_silence else 0.0,
        name=wanted.name,
        language=wanted.language,
    )
    write_voice(
        path,
        voice.embedding.numpy(),
        name=voice.name,
        model=voice.model,
        codes=None if voice.codes is None else voice.codes.numpy(),
        language=voice.language,
        transcript=voice.transcript,
    )


def load_voice_maker(*checkpoints: str) -> VoiceMaker:
    """Load the encoders of the first Base checkpoint among these, in one CPU thread.

    Raises CheckpointError if there is none.
    """
    import torch

    from realtime_tts.checkpoint import find_checkpoint
    from realtime_tts.model.voice_encoder import VoiceEncoder

    torch.set_num_threads(1)
    reasons = []
    for checkpoint in checkpoints:
        try:
            return partial(_make_voice, VoiceEncoder.load(find_checkpoint(checkpoint)))
        except CheckpointError as error:  # another variant, which has no encoders
            reasons.append(str(error))
    raise CheckpointError("; ".join(reasons))
