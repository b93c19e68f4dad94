"""What a client of vLLM-Omni's speech socket asks for in `session.config`, parsed and checked."""

from __future__ import annotations

from typing import Any

from realtime_tts.audio.formats import AudioFormat
from realtime_tts.dialects.catalogue import SpeechFields, our_format, refuse_cloning
from realtime_tts.dialects.fields import read_fields
from realtime_tts.errors import RequestError

_FORMS = {"language": 'a string, such as "Auto" or "English"'}


class Config(SpeechFields, frozen=True, kw_only=True):
    """A `session.config`. Other keys are ignored; null counts as absent."""

    language: str | None = None
    response_format: str = "wav"
    stream_audio: bool = False
    word_timestamps: bool = False
    split_granularity: Any = None
    streaming_mode: Any = None

    @property
    def pacing(self) -> str | None:
        """Our name for the client's way to split text; None: it names none that we know."""
        if self.streaming_mode == "sentence_commit":
            return "sentence"
        known = self.split_granularity in ("sentence", "clause")
        return self.split_granularity if known else None

    @property
    def audio(self) -> AudioFormat:
        """This server's name for the format. Raises RequestError if the server cannot make it."""
        return our_format(self.response_format)


def parse_config(fields: dict[str, Any]) -> Config:
    """Parse the configuration in a message. Raises RequestError that names the field at fault."""
    refuse_cloning(fields)
    config = read_fields(fields, Config, _FORMS)
    if config.word_timestamps and not (config.stream_audio and config.response_format == "pcm"):
        raise RequestError(
            "`word_timestamps` come with streamed PCM only: set `stream_audio` to true and "
            '`response_format` to "pcm"'
        )
    return config
