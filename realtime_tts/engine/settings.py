"""Settings of the engine, and the engine they describe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from realtime_tts import demo_voice
from realtime_tts.engine.check import no_voice
from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.interface import Engine, Progress
from realtime_tts.engine.memory import KVMemory
from realtime_tts.engine.models import no_family
from realtime_tts.errors import ConfigError
from tts_scheduler import SchedulerConfig

if TYPE_CHECKING:
    from realtime_tts.text.tokenizer import Qwen2Tokenizer
    from realtime_tts.voices.maker import VoiceMaker

EngineKind = Literal["inline", "process", "fake"]
KINDS = ("inline", "process", "fake")
DTYPES = ("float32", "bfloat16", "float16")
RANDOM_SIZES = ("1.7B", "0.6B", "demo")
RANDOM_FRAMES = 64
"""Length of a turn with random weights, if nothing else is asked for: 5.1 s."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What runs, where, and how much of it. Building one loads nothing.

    `kind`: the model in a thread of this process (inline) or in a process of its own, or tones
    instead of a model (fake). `devices`: one engine process for each, with `slots` of its own;
    none: one engine on `device`.
    `model`: "demo", a local checkpoint folder or a Hub id. `slots`: turns that can hold state at
    once. `threads`: CPU threads of the model (None: all cores but one, eight at most).
    `max_frames`: frames of 80 ms after which a turn ends with `max_length` (None: the
    checkpoint's own limit). `utilisation`: share of a frame's 80 ms that a step may take before
    turns have to wait; `max_queue` of them wait, `queue_timeout` seconds at most.
    Above 1, turns are let in though they cannot all be spoken in real time.
    `kv_memory`: what keys and values get of a CUDA device, as "40GiB", "80%" or "0.8" of what is
    free (None: nearly all); on a CPU they take what the speech really made needs.
    `step_seconds` and `row_seconds` are the fake engine's speed. `random_weights` takes the place
    of `model`: the dimensions of a release ("1.7B", "0.6B") or of the demo voice ("demo") with
    weights nobody trained; every turn then has `max_frames` frames, and no guard ends it.
    `voices_dir`: the folder of registered voices (None: there are none).
    """

    model: str = demo_voice.NAME
    kind: EngineKind = "inline"
    device: str = "cpu"
    devices: tuple[str, ...] = ()
    dtype: str = "float32"
    slots: int = 16
    threads: int | None = None
    max_frames: int | None = None
    kv_memory: str | None = None
    lead_cap: float = 3.0
    min_start_tokens: int = 2
    max_start_wait: float = 0.15
    utilisation: float = 0.8
    max_queue: int = 4
    queue_timeout: float = 2.0
    guards: GuardConfig = GuardConfig()
    step_seconds: float = 0.002
    row_seconds: float = 0.0
    random_weights: str | None = None
    voices_dir: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"engine must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if self.devices and self.kind == "inline":
            raise ConfigError("an inline engine has one device; several need one process each")
        if self.dtype not in DTYPES:
            raise ConfigError(f"dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}")
        if self.random_weights is not None:
            self._check_random(self.random_weights)
        if self.kv_memory is not None:
            self._check_kv_memory()
        for name in (
            "slots",
            "threads",
            "max_frames",
            "min_start_tokens",
            "lead_cap",
            "utilisation",
        ):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} must be positive, got {value}")
        not_negative = (
            "max_start_wait",
            "step_seconds",
            "row_seconds",
            "max_queue",
            "queue_timeout",
        )
        for name in not_negative:
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must not be negative, got {getattr(self, name)}")
        try:
            self.scheduler()
        except ValueError as error:
            raise ConfigError(str(error)) from None

    def _check_random(self, size: str) -> None:
        if size not in RANDOM_SIZES:
            raise ConfigError(f"random weights come as {', '.join(RANDOM_SIZES)}; got {size!r}")
        if self.kind == "fake" or self.model != demo_voice.NAME:
            raise ConfigError("random weights take the place of a model; give one of the two")
        if self.guards.enabled:
            raise ConfigError("random weights make noise, which the guards would end: disable them")

    def _check_kv_memory(self) -> None:
        _ = self._kv_memory  # raises
        if not self.on_cuda:
            raise ConfigError("kv_memory is a share of a CUDA device; a CPU takes what it needs")

    @property
    def on_cuda(self) -> bool:
        """Whether all its devices are CUDA's."""
        return all(name.startswith("cuda") for name in self.devices or (self.device,))

    @property
    def _kv_memory(self) -> KVMemory | None:
        return None if self.kv_memory is None else KVMemory.parse(self.kv_memory)

    def processes(self) -> tuple[EngineConfig, ...]:
        """The engine of each process; none if it runs in a thread of this one."""
        if self.kind != "process" and not self.devices:
            return ()
        devices = self.devices or (self.device,)
        return tuple(replace(self, device=device, devices=()) for device in devices)

    def scheduler(self) -> SchedulerConfig:
        """The scheduler's part of these settings."""
        return SchedulerConfig(
            slots=self.slots,
            lead_cap=self.lead_cap,
            min_start_tokens=self.min_start_tokens,
            max_start_wait=self.max_start_wait,
            utilisation=self.utilisation,
            max_queue=self.max_queue,
            queue_timeout=self.queue_timeout,
        )

    @property
    def name(self) -> str:
        """What is loaded, as people are told."""
        if self.kind == "fake":
            return "a fake engine (tones)"
        if self.random_weights is not None:
            return f"random weights ({self.random_weights} dimensions)"
        return self.model

    @property
    def registered(self) -> Callable[[str], bool]:
        """Tells whether a name is that of a registered voice; look-ups are cheap."""
        if self.voices_dir is None:
            return no_voice
        from realtime_tts.voices.registry import Registry

        return Registry(self.voices_dir).has

    @property
    def family_of(self) -> Callable[[str], str | None]:
        """Which checkpoints can speak a registered voice, by its name; None: no such voice."""
        if self.voices_dir is None:
            return no_family
        from realtime_tts.voices.registry import Registry

        registry = Registry(self.voices_dir)

        def family(name: str) -> str | None:
            record = registry.find(name)
            return None if record is None else record.model

        return family

    def voice_maker_loader(self, *others: EngineConfig) -> Callable[[], VoiceMaker]:
        """A function for the voice worker that loads what encodes recordings: the encoder of the
        first Base checkpoint of these engines."""
        if self.kind == "fake":
            from realtime_tts.voices.maker import load_fake

            return load_fake
        from realtime_tts.engine.voice_maker import load_voice_maker

        return partial(load_voice_maker, *(one._checkpoint for one in (self, *others)))

    @property
    def _checkpoint(self) -> str:
        return str(demo_voice.FOLDER) if self.model == demo_voice.NAME else self.model

    def loader(self) -> Callable[[Progress], Engine]:
        """A function that builds the engine; call it where it may take its time."""
        if self.random_weights is not None:
            return self._load_random
        return self._load_fake if self.kind == "fake" else self._load_torch

    def _load_fake(self, progress: Progress) -> Engine:
        from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig

        config = FakeEngineConfig(
            slots=self.slots, step_seconds=self.step_seconds, row_seconds=self.row_seconds
        )
        if self.max_frames is not None:
            config = replace(config, max_frames=self.max_frames)
        return FakeEngine(config, registered=self.registered)

    def _load_torch(self, progress: Progress) -> Engine:
        from realtime_tts.engine.make import load_engine

        return load_engine(
            self._checkpoint,
            name=self.model,
            slots=self.slots,
            device=self.device,
            dtype=self.dtype,
            threads=self.threads,
            max_frames=self.max_frames,
            kv_memory=self._kv_memory,
            progress=progress,
            voices_dir=self.voices_dir,
        )

    def _load_random(self, progress: Progress) -> Engine:
        from realtime_tts.engine.random_voice import load_random

        assert self.random_weights is not None
        return load_random(
            self.random_weights,
            name=self.name,
            slots=self.slots,
            device=self.device,
            dtype=self.dtype,
            threads=self.threads,
            frames=RANDOM_FRAMES if self.max_frames is None else self.max_frames,
            kv_memory=self._kv_memory,
            progress=progress,
        )

    def load_tokenizer(self) -> Qwen2Tokenizer:
        """The text tokenizer of the checkpoint. Raises CheckpointError."""
        from realtime_tts.text.tokenizer import Qwen2Tokenizer

        if self.kind == "fake" or self.random_weights is not None:
            return Qwen2Tokenizer.from_folder(demo_voice.FOLDER)
        from realtime_tts.model import find_checkpoint

        return Qwen2Tokenizer.from_folder(find_checkpoint(self._checkpoint))
