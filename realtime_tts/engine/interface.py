"""The engine loop's interface to a model: a `StepPlan` goes in, codes and samples come back.

Free of torch, like `link.py`, the interface between the loop and the front.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from realtime_tts.checkpoint import Progress as Progress
from realtime_tts.engine.made_codes import Codes
from realtime_tts.errors import RequestError
from realtime_tts.languages import known_as
from realtime_tts.sampling import Sampling
from tts_scheduler import KVCacheSize, StepPlan

Samples = NDArray[np.float32]
Pcm = NDArray[np.int16]
BlockSamples = Samples | Pcm


class UtteranceSpec(msgspec.Struct, frozen=True):
    """Everything about an utterance that is known before its text.

    `voice`, `language` and `instructions` are as the client gave them; `Engine.check` refuses what
    the checkpoint cannot do. `model` picks one of several checkpoints (`models.py`); an engine has
    one and ignores it. `seed` makes an utterance reproducible. `layout` is one of
    `tts_scheduler.Layout`. `trim_silence`: "on" leaves out the silence before the first sound.
    `speed`: seconds of speech that the listener hears in one second; the engine makes the same
    speech at any speed. `begun`: it continues a turn that was heard in part, whose registered voice
    may have been deleted since.
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
    begun: bool = False


CLONING_VARIANTS = ("base", "fake")
"""Values of `EngineInfo.variant` of engines that can speak registered voices."""


class Execution(msgspec.Struct, frozen=True):
    """What an engine computes with, for people: shown in the log, in `/metrics` and at the start.

    `gpu` is the device's own name, empty for a CPU. `kv_bytes`: bytes reserved for keys and values;
    0: as many as they need.
    """

    device: str
    dtype: str
    gpu: str = ""
    programs: Literal["captured", "eager"] = "eager"
    """CUDA graphs ("captured"), or one module after another ("eager")."""
    kernels: Literal["triton", "torch"] = "torch"
    """Fused kernels ("triton"), or plain torch operations ("torch")."""
    predictor: Literal["persistent", "separate"] = "separate"
    """Whether the code predictor over few rows is one kernel per frame, or one per operation."""
    talker: Literal["persistent", "separate"] = "separate"
    """Whether the talker over few rows is one kernel per position, or one per operation."""
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
    """Number of frames after which a turn ends with reason `max_length`."""
    sample_rate: int = 24_000
    samples_per_frame: int = 1_920
    codes_per_frame: int = 16
    codebook_size: int = 2_048
    """Codes are numbers below this one."""
    fingerprint: str = ""
    """Fingerprint of the checkpoint: where it is equal, codes mean the same and are drawn alike."""
    random_weights: bool = False
    """Whether the model is untrained: it serves for measurements, and its speech is noise."""
    row_buckets: tuple[int, ...] = ()
    """Numbers of rows whose step is captured, smallest first: a step with another number costs as
    much as the next larger one. Empty: every number of rows has its own cost."""

    text_normalization: bool = False
    """Whether numbers and abbreviations have to become words first, because it misreads them."""
    instructions: bool = False
    """Whether it follows instructions about the style of its speech."""
    safe_tokens: int = 0
    """Text tokens of the longest utterance that is spoken well to its end; 0: there is no limit. A
    longer text is spoken in several utterances."""
    voice_family: str = ""
    """`model` of the registered voices that it can speak; empty: unknown."""
    voice_numbers: int = 0
    """How many numbers the embedding of such a voice has; 0: unknown, or any."""

    executions: tuple[Execution, ...] = ()
    """One for each device; empty for an engine that computes nothing."""

    models: tuple[EngineInfo, ...] = ()
    """The infos of all checkpoints, where there are several: the first is the default."""

    @property
    def all_models(self) -> tuple[EngineInfo, ...]:
        """The info of every checkpoint: `models`, or this one alone."""
        return self.models or (self,)

    @property
    def clones(self) -> bool:
        """Whether it, or one of its models, speaks registered voices."""
        return any(info.variant in CLONING_VARIANTS for info in self.all_models)


@dataclass(frozen=True, slots=True)
class RowError:
    """The failure of one row; others are not affected. `code` and `message` go to the client."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class SoundBlock:
    """The samples of one codec call: row i of `samples` [rows, n] belongs to `ids[i]`.

    float32 in [-1, 1], or int16 that is PCM already, which costs a GPU nothing extra.
    """

    ids: Sequence[str]
    samples: BlockSamples


@dataclass(slots=True)
class StepOutput:
    """What one engine step made, by utterance id.

    `frames`: first code of the frame made in this step (for the repetition guard), for every
    planned row that did not end or fail. `codes`: all codes of the same frames, and of a silent
    start before them, as `made_codes.packed`. `tokens`: the text token that each of these frames
    speaks, packed too, where the checkpoint has alignment heads; they may go back. `samples`:
    float32 in [-1, 1], the samples that left the codec in this step; `blocks` holds many rows at a
    time, which costs the host a fraction. An id is in one of them, once. `ended`: rows whose speech
    is over, with the reason (`complete` or `max_length`); all their pending frames went through the
    codec. `failed`: rows that ended with an error of their own; their pending frames are dropped.
    """

    frames: dict[str, int] = field(default_factory=dict)
    codes: dict[str, bytes] = field(default_factory=dict)
    tokens: dict[str, bytes] = field(default_factory=dict)
    samples: dict[str, Samples] = field(default_factory=dict)
    blocks: list[SoundBlock] = field(default_factory=list)
    ended: dict[str, str] = field(default_factory=dict)
    failed: dict[str, RowError] = field(default_factory=dict)


class MeasuredStep(NamedTuple):
    """A plan and the seconds it took."""

    plan: StepPlan
    seconds: float


class Engine(Protocol):
    """The model side of the engine loop. Called from one thread only; ids are the utterances'."""

    @property
    def info(self) -> EngineInfo: ...

    @property
    def kv_cache(self) -> KVCacheSize | None:
        """Size of the memory for keys and values, which plans assign; None: it has no limit, and
        plans reserve nothing."""
        return None

    def warm_up(self, progress: Progress) -> list[MeasuredStep]:
        """Do everything slow once, so that the first listener does not wait for it.

        Returns steps as they ran when warm, from which the cost model learns before the first turn.
        """

    def check(self, spec: UtteranceSpec) -> None:
        """Raise RequestError if the checkpoint cannot do what `spec` asks."""

    def prompt_tokens(self, spec: UtteranceSpec) -> int:
        """Return the positions of the prompt before the text, those of a reference included: a
        measure of what a prefill costs and of the memory it takes."""

    def text_needed(self, spec: UtteranceSpec) -> int:
        """Return how many text tokens the streaming layout needs for frame 0.

        It is 1, except for a voice cloned in context: there a value of 0 or less, -n, means that
        frame 0 and n further frames still carry the reference's own text.
        """

    def silent_start(self, spec: UtteranceSpec) -> int:
        """Return how many first frames need not be made, because they are always the same silence.

        A `Prefill` says whether they are part of it; their sound comes with that of the next frame.
        """
        return 0

    def open(self, utterance_id: str, spec: UtteranceSpec, spoken: Codes | None = None) -> None:
        """Begin an utterance; it owns no slot until a plan prefills it. Raises RequestError.

        `spoken` [frames, 16]: frames that another engine made and whose sound was delivered. The
        prefill continues after them with the next frame, as if this engine had made them.
        """

    def append(self, utterance_id: str, ids: Sequence[int]) -> None:
        """Add text token ids."""

    def finish(self, utterance_id: str) -> None:
        """Mark the text as complete."""

    def step(self, plan: StepPlan) -> StepOutput:
        """Carry out one plan in this order: swap out, reserve, swap in, prefill, decode, codec."""

    def close(self, utterance_id: str) -> None:
        """Forget an utterance and clear its slot. Idempotent."""


def no_voice(name: str) -> bool:
    """Return False: the look-up of a server that has no registered voices."""
    return False


def check_spec(
    info: EngineInfo, spec: UtteranceSpec, registered: Callable[[str], bool] = no_voice
) -> None:
    """Raise RequestError if the engine's checkpoint cannot do what `spec` asks.

    `registered` returns whether there is a registered voice of that name. The engine, which knows
    more, checks again when the turn opens.
    """
    if spec.voice and spec.voice.lower() not in info.voices:
        _check_registered(info, spec.voice, spec.begun or registered(spec.voice.lower()))
    language = known_as(spec.language)
    if language not in info.languages:
        known = ", ".join(info.languages)
        message = f"unknown language {spec.language!r}; this checkpoint has: {known}"
        raise RequestError(message, "language")


def _check_registered(info: EngineInfo, voice: str, there: bool) -> None:
    """Raise RequestError unless the checkpoint can speak a registered voice that is `there`."""
    if there and info.clones:
        return
    if there:
        raise RequestError(
            f"{voice!r} is a registered voice, which a Base checkpoint speaks with; "
            f"{info.model} is a {info.variant} checkpoint and has voices of its own only"
        )
    if not info.voices:
        raise RequestError(f"unknown voice {voice!r}: GET /v1/voices lists those there are")
    known = ", ".join(info.voices)
    raise RequestError(f"unknown voice {voice!r}; this checkpoint has: {known}")
