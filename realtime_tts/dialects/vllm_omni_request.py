"""What a client of vLLM-Omni's speech socket asks for in `session.config`, read and checked."""

from __future__ import annotations

from typing import Any

import msgspec

from realtime_tts.audio.formats import AudioFormat
from realtime_tts.dialects.catalogue import Task, our_format, refuse_cloning
from realtime_tts.dialects.fields import read_fields
from realtime_tts.errors import RequestError
from realtime_tts.protocol.settings import Seed

_FORMS = {"language": 'a string, such as "Auto" or "English"'}


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """A `session.config`. Other keys are ignored; null counts as absent."""

    model: str | None = None
    voice: str | None = None
    speaker: str | None = None
    task_type: Task | None = None
    language: str | None = None
    instructions: str | None = None
    response_format: str = "wav"
    speed: float = 1.0
    stream_audio: bool = False
    word_timestamps: bool = False
    seed: Seed | None = None
    split_granularity: Any = None
    streaming_mode: Any = None

    @property
    def pacing(self) -> str | None:
        """Its way to part text, as ours; None: it names none that we know."""
        if self.streaming_mode == "sentence_commit":
            return "sentence"
        known = self.split_granularity in ("sentence", "clause")
        return self.split_granularity if known else None

    @property
    def voice_name(self) -> str | None:
        return self.speaker if self.voice is None else self.voice

    @property
    def audio(self) -> AudioFormat:
        """The format, as ours. Raises RequestError if this server cannot make it."""
        return our_format(self.response_format)


def parse_config(fields: dict[str, Any]) -> Config:
    """The configuration in a message. Raises RequestError that names the field at fault."""
    refuse_cloning(fields)
    config = read_fields(fields, Config, _FORMS)
    if config.word_timestamps and not (config.stream_audio and config.response_format == "pcm"):
        raise RequestError(
            "`word_timestamps` come with streamed PCM only: set `stream_audio` to true and "
            '`response_format` to "pcm"'
        )
    return config
