"""What the engine loop asks of a model: a `StepPlan` goes in, codes and samples come back.

Free of torch, as `link.py` is, the boundary between the loop and the front.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from realtime_tts.engine.made_codes import Codes
from realtime_tts.errors import RequestError
from realtime_tts.sampling import Sampling
from tts_scheduler import KVCacheSize, StepPlan

Samples = NDArray[np.float32]
Pcm = NDArray[np.int16]
BlockSamples = Samples | Pcm
Progress = Callable[[str, int, int], None]
"""Called with (what, done, total) while something takes longer than a second."""


class UtteranceSpec(msgspec.Struct, frozen=True):
    """Everything about an utterance that is known before its text.

    `voice`, `language` and `instructions` are as the client gave them; `Engine.check` refuses what
    the checkpoint cannot do. `model` picks one of several checkpoints (`models.py`); an engine
    has one and ignores it. `seed` makes an utterance reproducible. `layout` is one of
    `tts_scheduler.Layout`. `trim_silence`: "on" begins with the first sound. `speed`: its listener
    plays so many seconds of it in one; what the engine makes is the same.
    """

    model: str | None = None
    voice: str | None = None
    language: str | None = None
    instructions: str | None = None
    seed: int = 0
    sampling: Sampling = Sampling()
    layout: str = "auto"
    trim_silence: str = "off"
    speed: float = 1.0


CLONING_VARIANTS = ("base", "fake")
"""What `EngineInfo.variant` is where registered voices can be spoken with."""


class Execution(msgspec.Struct, frozen=True):
    """What an engine computes with, for people: the log, `/metrics` and the start show it.

    `gpu` is the device's own name, empty for a CPU. `kv_bytes`: memory for keys and values; 0:
    what they need.
    """

    device: str
    dtype: str
    gpu: str = ""
    programs: Literal["captured", "eager"] = "eager"
    """CUDA graphs, or module after module."""
    kernels: Literal["triton", "torch"] = "torch"
    """Fused kernels, or plain torch operations."""
    predictor: Literal["persistent", "separate"] = "separate"
    """The code predictor over few rows: one kernel for a frame, or one for each operation."""
    talker: Literal["persistent", "separate"] = "separate"
    """The talker over few rows: one kernel for a position, or one for each operation."""
    kv_bytes: int = 0

    def __str__(self) -> str:
        parts = [self.gpu] if self.gpu else []
        if self.programs == "eager":
            return ", ".join([*parts, self.dtype, "plain torch modules"])
        kernels = "Triton kernels" if self.kernels == "triton" else "torch operations"
        stages = f"{self.talker} talker", f"{self.predictor} code predictor"
        return ", ".join([*parts, self.dtype, "captured programs", kernels, *stages])


class EngineInfo(msgspec.Struct, frozen=True):
    """What an engine can do; the server shows it in `ready` and `/v1/voices`."""

    model: str
    variant: str
    voices: tuple[str, ...]
    languages: tuple[str, ...]
    default_voice: str | None
    default_sampling: Sampling
    slots: int
    max_frames: int
    """Frames after which a turn ends with reason `max_length`."""
    sample_rate: int = 24_000
    samples_per_frame: int = 1_920
    codes_per_frame: int = 16
    codebook_size: int = 2_048
    """Codes are numbers below this."""
    fingerprint: str = ""
    """Of the checkpoint: where it is the same, codes mean the same and are drawn alike."""
    random_weights: bool = False
    """The model is untrained: it is there to be measured, and its speech is noise."""
    row_buckets: tuple[int, ...] = ()
    """Numbers of rows whose step is captured, smallest first: a step of other numbers costs what
    the next one costs. Empty: every number of rows has its own cost."""

    text_normalization: bool = False
    """It misreads numbers and abbreviations: they are to be words before it gets them."""
    instructions: bool = False
    """It speaks as instructions say."""
    safe_tokens: int = 0
    """Text tokens that an utterance may have and be spoken well to its end; 0: as many as there
    are. A longer text is spoken in several."""
    voice_family: str = ""
    """`model` of the registered voices that it can speak with; empty: it does not say."""

    executions: tuple[Execution, ...] = ()
    """One for each device; none of an engine that computes nothing."""

    models: tuple[EngineInfo, ...] = ()
    """Of every checkpoint, where there are several: the first is the default."""

    @property
    def clones(self) -> bool:
        """Whether it, or one of its models, speaks with registered voices."""
        infos = self.models or (self,)
        return any(info.variant in CLONING_VARIANTS for info in infos)


@dataclass(frozen=True, slots=True)
class RowError:
    """One row failed; the others did not notice. `code` and `message` go to the client."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class SoundBlock:
    """What one call of the codec made: row i of `samples` [rows, n] is for `ids[i]`.

    float32 in [-1, 1], or int16 that is PCM already, which a GPU quantises in passing.
    """

    ids: Sequence[str]
    samples: BlockSamples


@dataclass(slots=True)
class StepOutput:
    """What one engine step made, by utterance id.

    `frames`: first code of the frame made in this step (for the repetition guard), of every planned
    row that did not end or fail. `codes`: all codes of the same frames, as `made_codes.packed`.
    `tokens`: which of its text tokens each of them speaks, where the checkpoint names the heads
    that know; they are read frame by frame, and nothing keeps them from going back.
    `samples`: float32 in [-1, 1], the samples that left the codec in this step; `blocks` is the
    same for many rows at a time, which costs the host a fraction. An id is in one of them, once.
    `ended`: rows whose speech is over, with the reason (`complete` or `max_length`).
    `failed`: rows that ended with an error of their own.
    Rows in `ended` have had all their pending frames run through the codec; what a row in `failed`
    had pending is dropped.
    """

    frames: dict[str, int] = field(default_factory=dict)
    codes: dict[str, bytes] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    samples: dict[str, Samples] = field(default_factory=dict)
    blocks: list[SoundBlock] = field(default_factory=list)
    ended: dict[str, str] = field(default_factory=dict)
    failed: dict[str, RowError] = field(default_factory=dict)


class MeasuredStep(NamedTuple):
    """A plan and the seconds it took."""

    plan: StepPlan
    seconds: float


class Engine(Protocol):
    """The model side. Called from one thread only; ids are the utterances' own."""

    @property
    def info(self) -> EngineInfo: ...

    @property
    def kv_cache(self) -> KVCacheSize | None:
        """The memory for keys and values, which plans share out; None: it has no limit, and plans
        reserve nothing."""

    def warm_up(self, progress: Progress) -> list[MeasuredStep]:
        """Do everything slow once, so that the first listener does not wait for it.

        Returns steps as they ran when warm: what the cost model knows before anybody speaks.
        """

    def check(self, spec: UtteranceSpec) -> None:
        """Raise RequestError if the checkpoint cannot do what `spec` asks."""

    def prompt_tokens(self, spec: UtteranceSpec) -> int:
        """Positions of the prompt before the text, a reference's included: a measure of what a
        prefill costs and of the memory it takes."""

    def text_needed(self, spec: UtteranceSpec) -> int:
        """Text tokens its prompt takes with frame 0 in the streaming layout, if there are so many.

        1 but for voices with a reference in context; 0 and less: so many further frames still have
        text of the reference's.
        """

    def open(self, utterance_id: str, spec: UtteranceSpec, spoken: Codes | None = None) -> None:
        """Begin an utterance; it owns no slot until a plan prefills it. Raises RequestError.

        `spoken` [frames, 16]: frames that were made elsewhere, whose sound nobody wants again. The
        prefill goes on behind them: with the next frame, as if it had made them itself.
        """

    def append(self, utterance_id: str, ids: Sequence[int]) -> None:
        """Add text token ids."""

    def finish(self, utterance_id: str) -> None:
        """No more text will come."""

    def step(self, plan: StepPlan) -> StepOutput:
        """Carry out one plan: swap out, reserve, swap in, prefills, decodes, codec runs, in this
        order."""

    def close(self, utterance_id: str) -> None:
        """Forget an utterance and clear its slot. Idempotent."""


def no_voice(name: str) -> bool:
    """Whether there is a registered voice of that name, on a server that registers none."""
    return False


def check_spec(
    info: EngineInfo, spec: UtteranceSpec, registered: Callable[[str], bool] = no_voice
) -> None:
    """Raise RequestError if the engine's checkpoint cannot do what `spec` asks.

    `registered` tells whether there is a registered voice of that name. The engine checks again
    when the turn opens, and knows more: its word is the last one.
    """
    voice = spec.voice
    there = voice is not None and registered(voice.lower())
    if voice and voice.lower() not in info.voices and not (info.clones and there):
        if there:
            raise RequestError(
                f"{voice!r} is a registered voice, which a Base checkpoint speaks with; "
                f"{info.model} is a {info.variant} checkpoint and has voices of its own only"
            )
        if not info.voices:
            raise RequestError(f"unknown voice {voice!r}: GET /v1/voices lists those there are")
        known = ", ".join(info.voices)
        raise RequestError(f"unknown voice {voice!r}; this checkpoint has: {known}")
    language = (spec.language or "auto").lower()
    if language not in info.languages:
        known = ", ".join(info.languages)
        raise RequestError(f"unknown language {spec.language!r}; this checkpoint has: {known}")
