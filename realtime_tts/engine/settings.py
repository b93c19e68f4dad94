"""Settings of an engine: frozen, and checked once when they are built. load.py loads the engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from realtime_tts import demo_voice
from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.memory import MemoryBudget
from realtime_tts.errors import ConfigError
from tts_scheduler import SchedulerConfig

EngineKind = Literal["inline", "process", "fake"]
KINDS = ("inline", "process", "fake")
DTYPES = ("auto", "float32", "bfloat16", "float16")
RANDOM_SIZES = ("1.7B", "0.6B", "demo")
RANDOM_FRAMES = 64
"""Default length of a turn with random weights, in frames: 5.1 s."""


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What runs, where, and how much of it. Building one loads nothing. Raises ConfigError.

    `kind`: the model in a thread of this process (inline) or in a process of its own, or tones
    instead of a model (fake). `devices`: one engine process for each, with slots of its own; empty:
    one engine on `device`. `model`: "demo", a local checkpoint folder or a Hub id. `dtype`: "auto"
    is what the checkpoint is stored in on a GPU, and float32 on a CPU. `scheduler`: slots,
    admission and when speech begins; with `fit_slots`, a GPU gets as many slots as its memory
    holds, and at most these. `eager`: plain torch modules on a GPU, too, without kernels and
    captured programs. `threads`: CPU threads of the model (None: all cores but one, eight at most).
    `max_frames`: frames of 80 ms after which a turn ends with `max_length` (None: the checkpoint's
    own limit). `gpu_memory`: what the engine may take of a GPU, as "8GiB", "80%" or "0.8" (None:
    nearly all that is free). `step_seconds` is the fake engine's speed. `random_weights` takes the
    place of `model`: the dimensions of a release ("1.7B", "0.6B") or of the demo voice ("demo")
    with untrained weights; every turn then has `max_frames` frames, and no guard ends it.
    `voices_dir`: the folder of registered voices (None: there are none).
    """

    model: str = demo_voice.NAME
    kind: EngineKind = "inline"
    device: str = "cpu"
    devices: tuple[str, ...] = ()
    dtype: str = "auto"
    scheduler: SchedulerConfig = SchedulerConfig()
    fit_slots: bool = False
    eager: bool = False
    threads: int | None = None
    max_frames: int | None = None
    gpu_memory: str | None = None
    guards: GuardConfig = GuardConfig()
    step_seconds: float = 0.002
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
        if self.memory is not None and not self.on_cuda:
            raise ConfigError("gpu_memory is for a CUDA device; a CPU takes what it needs")
        for name in ("threads", "max_frames"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} must be positive, got {value}")
        if not 0 <= self.step_seconds < inf:
            raise ConfigError(
                f"step_seconds must be finite and not negative, got {self.step_seconds}"
            )

    def _check_random(self, size: str) -> None:
        if size not in RANDOM_SIZES:
            raise ConfigError(f"random weights come as {', '.join(RANDOM_SIZES)}; got {size!r}")
        if self.kind == "fake" or self.model != demo_voice.NAME:
            raise ConfigError("random weights take the place of a model; give one of the two")
        if self.guards.enabled:
            raise ConfigError("random weights make noise, which the guards would end: disable them")

    @property
    def on_cuda(self) -> bool:
        """Whether all its devices are CUDA devices."""
        return all(name.startswith("cuda") for name in self.devices or (self.device,))

    @property
    def memory(self) -> MemoryBudget | None:
        """The parsed `gpu_memory`. Raises ConfigError."""
        return None if self.gpu_memory is None else MemoryBudget.parse(self.gpu_memory)

    @property
    def checkpoint(self) -> str:
        """The folder or the Hub id of `model`."""
        return str(demo_voice.folder()) if self.model == demo_voice.NAME else self.model

    @property
    def name(self) -> str:
        """What is loaded, for people."""
        if self.kind == "fake":
            return "a fake engine (tones)"
        if self.random_weights is not None:
            return f"random weights ({self.random_weights} dimensions)"
        return self.model

    def processes(self) -> tuple[EngineConfig, ...]:
        """Return the config of each engine process; none if the engine runs in a thread."""
        if self.kind != "process" and not self.devices:
            return ()
        devices = self.devices or (self.device,)
        return tuple(replace(self, device=device, devices=()) for device in devices)
