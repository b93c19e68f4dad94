"""Names in requests, translated to ours: checkpoints, voices, languages and formats of sound."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from realtime_tts.audio.encoders import require
from realtime_tts.audio.formats import AudioFormat, audio_format, parse_format
from realtime_tts.dialects.fields import AskedSpeed, WrongField
from realtime_tts.engine.interface import CLONING_VARIANTS, EngineInfo
from realtime_tts.languages import known_as
from realtime_tts.protocol.settings import Seed

Task = Literal["CustomVoice", "VoiceDesign", "Base"]
"""`task_type` of vLLM-Omni: a named speaker, a described voice, or a registered voice."""


_Model = Annotated[
    str | None,
    Meta(
        description="a string: a loaded checkpoint; any other name leaves the choice to the server"
    ),
]
_Voice = Annotated[
    str | None,
    Meta(description="a string: a voice of the server, or one of OpenAI's names for one"),
]
_Instructions = Annotated[
    str | None,
    Meta(description="a string: how to speak, for checkpoints that take instructions"),
]
_Speed = Annotated[float, Meta(description="a number: 0.7 to 1.4; of others the nearest is used")]


class SpeechFields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that a request to OpenAI's API and a configuration of vLLM-Omni share. `speaker`
    and `task_type` are vLLM-Omni's."""

    model: _Model = None
    voice: _Voice = None
    speaker: str | None = None
    task_type: Task | None = None
    instructions: _Instructions = None
    speed: _Speed = 1.0
    seed: Seed | None = None

    @property
    def voice_name(self) -> str | None:
        return self.speaker if self.voice is None else self.voice

    @property
    def our_speed(self) -> AskedSpeed:
        return AskedSpeed.nearest(self.speed)


_CLONING = ("ref_audio", "ref_text", "speaker_embedding", "references")


def model_names(info: EngineInfo) -> list[str]:
    """Return the names of the loaded checkpoints."""
    return [one.model for one in info.all_models]


def our_model(name: str | None, info: EngineInfo) -> str | None:
    """Return the name if such a checkpoint is loaded, else None: other APIs have other models."""
    return name if name in model_names(info) else None


def refuse_cloning(fields: Collection[str]) -> None:
    """Raise WrongField if a request in vLLM-Omni's words brings a voice of its own."""
    for name in _CLONING:
        if name in fields:
            message = (
                f"`{name}` is not taken here: register the voice with `POST /v1/voices`, "
                "then give its id as `voice`"
            )
            raise WrongField(message, name)


def model_for(
    task: Task | None, name: str | None, voice: str | None, info: EngineInfo
) -> str | None:
    """Return `our_model` for a task of vLLM-Omni: a loaded checkpoint that is made for it.

    Raises WrongField if there is none, or if `name` is a checkpoint for another task.
    """
    named = our_model(name, info)
    if task is None:
        return named
    fitting = [one for one in info.all_models if _is_for(task, one)]
    if named is not None:
        fitting = [one for one in fitting if one.model == named]
    if not fitting:
        asked = named or ", ".join(model_names(info))
        raise WrongField(f"`task_type` cannot be {task!r}: {asked} is not made for it", "task_type")
    return next((one.model for one in fitting if voice in one.voices), fitting[0].model)


def _is_for(task: Task, info: EngineInfo) -> bool:
    if task == "Base":
        return info.variant in CLONING_VARIANTS
    return bool(info.voices) if task == "CustomVoice" else info.variant == "voice_design"


def our_language(code: str | None, info: EngineInfo) -> str | None:
    """Return our name for `en`, `en-GB` and so on; None if no checkpoint has the language."""
    if code is None:
        return None
    name = known_as(code)
    languages = {language for one in info.all_models for language in one.languages}
    return name if name in languages else None


def own_voice(voices: Sequence[str], *names: str) -> str | None:
    """Return the first of these names that is one of `voices`, in any case."""
    own = {voice.lower(): voice for voice in voices}
    return next((own[name.lower()] for name in names if name.lower() in own), None)


def chosen_voice(
    name: str | None, voices: Sequence[str], *others: str, foreign: bool = False, hint: str = ""
) -> str | None:
    """Return the voice of this name, in any case, or else the first of the `others` that exists.

    None leaves the choice to the checkpoint: where no voice is named, or a `foreign` one of another
    API. Raises WrongField for any other name; it lists the voices, and ends with `hint`.
    """
    found = None if name is None else own_voice(voices, name, *others)
    if name is None or found is not None or foreign:
        return found
    there_are = ", ".join(voices) or "none by name"
    message = f"there is no voice {name[:40]!r}; this server has {there_are}{hint}"
    raise WrongField(message, "voice", "voice_not_found")


def our_format(
    name: str,
    sample_rate: int | None = None,
    *,
    container: str | None = None,
    bit_rate: int | None = None,
) -> AudioFormat:
    """Return the format of a name that `parse_format` reads: `pcm_s16le`, `wav`, `mp3_44100_128`.

    The other arguments override the name, in hertz and bits per second. Raises RequestError, which
    lists the formats, also for one that this server cannot make.
    """
    found = parse_format(name)
    if sample_rate is not None or container is not None or bit_rate is not None:
        container = found.container if container is None else container
        found = audio_format(found.encoding, sample_rate, container, bit_rate)
    require(found)
    return found
