"""What a client of Cartesia's API asks for, parsed and checked, and the messages it gets."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from realtime_tts.access.account import Account
from realtime_tts.audio.formats import AudioFormat
from realtime_tts.dialects.api import Api, Refusal
from realtime_tts.dialects.catalogue import chosen_voice, our_format, our_language, our_model
from realtime_tts.dialects.dictionaries import NOT_FOUND, named
from realtime_tts.dialects.fields import (
    AskedSpeed,
    ContextId,
    WrongField,
    read_fields,
    without_nulls,
)
from realtime_tts.dialects.timing import words_of
from realtime_tts.engine.interface import EngineInfo
from realtime_tts.errors import RequestError
from realtime_tts.instructions import manner
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.messages import SAMPLE_RATE
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.protocol.ticks import ticks
from realtime_tts.server.front import Front
from realtime_tts.text.speech_times import SpokenSpan

DEFAULT_BUFFER_DELAY_MS = 3_000
_SETTLE_SECONDS = 0.3
"""Whole sentences that follow each other faster than this are spoken as one text."""

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_ENCODINGS = ("pcm_s16le", "pcm_f32le", "pcm_mulaw", "pcm_alaw")
_FORMS = {
    "voice": 'an object {"mode": "id", "id": "…"}, or the id as a string',
    "output_format": 'an object {"container", "encoding", "sample_rate"}',
    "output_format.container": '"raw", "wav" or "mp3"',
    "output_format.encoding": '"pcm_s16le", "pcm_f32le", "pcm_mulaw" or "pcm_alaw"',
    "output_format.sample_rate": "a whole number of Hz",
    "output_format.bit_rate": "a whole number of bits a second",
    "speed": 'a number, "slow", "normal" or "fast"',
    "generation_config.speed": "a number",
    "generation_config.emotion": "a string of at most 100 characters, or a list of strings",
}


class OutputFormat(msgspec.Struct, frozen=True):
    """The format of the sound. `encoding` does not matter to an mp3, `bit_rate` only to an mp3."""

    container: str = "raw"
    encoding: str = "pcm_s16le"
    sample_rate: int = SAMPLE_RATE
    bit_rate: int | None = None

    @property
    def audio(self) -> AudioFormat:
        """This server's name for the format. Raises RequestError if the server cannot make it."""
        if self.container == "mp3":
            return our_format("mp3", self.sample_rate, bit_rate=self.bit_rate)
        for name, choices in (("container", ("raw", "wav")), ("encoding", _ENCODINGS)):
            found = getattr(self, name)
            if found not in choices:
                path = f"output_format.{name}"
                raise RequestError(f"`{path}` must be {_FORMS[path]}, found {found[:40]!r}")
        return our_format(self.encoding, self.sample_rate, container=self.container)


class Voice(msgspec.Struct, frozen=True):
    """A voice, by its id; this server supports no other way to name one."""

    id: str | None = None
    mode: str = "id"


_WORDS = {"slowest": 0.7, "slow": 0.85, "normal": 1.0, "fast": 1.2, "fastest": 1.4}
"""The speeds that older versions of the API have words for; how fast they are is our choice."""


class GenerationConfig(msgspec.Struct, frozen=True):
    """How to speak. The volume cannot be changed: another one is refused."""

    speed: float | str | None = None
    volume: float = 1.0
    emotion: Annotated[str, Meta(max_length=100)] | list[str] | None = None


class Generation(msgspec.Struct, frozen=True, kw_only=True, rename={"continue_": "continue"}):
    """A request over any of the routes. Other keys are ignored; null counts as absent."""

    transcript: str = ""
    model_id: str | None = None
    voice: Voice | str | None = None
    output_format: OutputFormat = OutputFormat()
    context_id: ContextId | None = None
    continue_: bool = False
    flush: bool = False
    cancel: bool = False
    language: str | None = None
    pronunciation_dict_id: str | None = None
    add_timestamps: bool = False
    max_buffer_delay_ms: Annotated[int, Meta(ge=0, le=5_000)] = DEFAULT_BUFFER_DELAY_MS
    generation_config: GenerationConfig = GenerationConfig()
    speed: float | str = 1.0

    @property
    def our_speed(self) -> AskedSpeed:
        """The speed to speak at. Raises RequestError for a word that names none."""
        asked = self.generation_config.speed
        name = "speed" if asked is None else "generation_config.speed"
        asked = self.speed if asked is None else asked
        if isinstance(asked, str) and asked not in _WORDS:
            raise WrongField(f"`{name}` must be a number, or one of {', '.join(_WORDS)}", name)
        return AskedSpeed.nearest(_WORDS[asked] if isinstance(asked, str) else asked)

    def instructions(self, info: EngineInfo) -> str | None:
        """Return the emotion as instructions; None for a checkpoint that takes no instructions."""
        asked = self.generation_config.emotion
        emotion = ", ".join(asked)[:100] if isinstance(asked, list) else asked
        if not emotion or emotion.lower() == "neutral" or not info.instructions:
            return None
        return manner(emotion)

    @property
    def voice_id(self) -> str | None:
        return self.voice.id if isinstance(self.voice, Voice) else self.voice

    @property
    def hold_seconds(self) -> float:
        """Seconds that text may wait for more text before it is spoken to its end."""
        return max(_SETTLE_SECONDS, self.max_buffer_delay_ms / 1000)

    @property
    def whole_units(self) -> bool:
        """Whether the client buffers text itself, so that every transcript is whole sentences."""
        return self.max_buffer_delay_ms == 0


def parse(fields: dict[str, Any]) -> Generation:
    """Parse the request in a JSON object. Raises RequestError that names the field at fault."""
    request = read_fields(without_nulls(fields), Generation, _FORMS)
    volume = request.generation_config.volume
    if volume != 1:
        raise RequestError(
            "`generation_config.volume` must be 1, or left out: this server speaks as the voice "
            f"does, and cannot change that to {volume!r:.40}"
        )
    return request


def settings_of(
    request: Generation, front: Front, account: Account, **more: Any
) -> SessionSettings:
    """Return the settings of a request; `more` is for `Front.settings`. Raises RequestError."""
    dictionary = [] if request.pronunciation_dict_id is None else [request.pronunciation_dict_id]
    return front.settings(
        audio=request.output_format.audio,
        model=our_model(request.model_id, front.info),
        voice=our_voice(request, front.voice_names(account)),
        language=our_language(request.language, front.info),
        lexicons=named(front, dictionary, "pronunciation_dict_id"),
        speed=request.our_speed.given,
        instructions=request.instructions(front.info),
        **more,
    )


def our_voice(request: Generation, voices: Sequence[str]) -> str | None:
    """Return the voice of this server that is meant; None leaves the choice to the checkpoint.

    An id from Cartesia's own catalogue, a UUID, gets the checkpoint's default. Raises RequestError
    for any other name that no voice has.
    """
    if isinstance(request.voice, Voice) and request.voice.id is None:
        raise RequestError("`voice.id` is missing: this server takes voices by their id only")
    name = request.voice_id
    foreign = name is not None and _UUID.fullmatch(name) is not None
    hint = ", and takes the UUID of any of Cartesia's voices for its own default"
    return chosen_voice(name, voices, foreign=foreign, hint=hint)


_PARTIAL, _OK = 206, 200
_LIMITED = "concurrency_limited"
_TITLES = {
    400: "Bad request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    429: "Too many requests",
    500: "Internal error",
    503: "Service unavailable",
}


class Stopwatch:
    """Measures `step_time`: milliseconds since the previous chunk."""

    def __init__(self) -> None:
        self._at = time.monotonic()

    def step_ms(self) -> float:
        """Return the milliseconds since the previous call, or since the start."""
        now = time.monotonic()
        step, self._at = now - self._at, now
        return round(step * 1000, 3)


def chunk(data: bytes, step_ms: float) -> dict[str, Any]:
    """Return a chunk of sound in the format that was asked for."""
    return {
        "type": "chunk",
        "data": base64.b64encode(data).decode(),
        "done": False,
        "status_code": _PARTIAL,
        "step_time": step_ms,
    }


def timestamps(span: SpokenSpan) -> dict[str, Any]:
    """Return the words of a span, with their times in seconds."""
    words = words_of(span)
    return {
        "type": "timestamps",
        "done": False,
        "status_code": _PARTIAL,
        "word_timestamps": {
            "words": [word.text for word in words],
            "start": [ticks(word.start, 10_000) / 10_000 for word in words],
            "end": [ticks(word.end, 10_000) / 10_000 for word in words],
        },
    }


def flush_done(flush_id: int) -> dict[str, Any]:
    """Return the message after all sound of the text up to a flush; `flush_id` counts from 1."""
    return {
        "type": "flush_done",
        "done": False,
        "flush_done": True,
        "flush_id": flush_id,
        "status_code": _PARTIAL,
    }


def done(reason: str) -> dict[str, Any]:
    """Return the end of a context. LiveKit looks for `done`, others for the type. `reason` is
    ours."""
    return {"type": "done", "done": True, "status_code": _OK, "reason": reason}


def error(failure: TurnFailure, request_id: str) -> dict[str, Any]:
    """Return an error. `done` is false, since LiveKit takes a true one for the end of its speech
    and never looks at the error."""
    body = API.body(API.of_failure(failure), request_id)
    if failure.code == "too_many_contexts":
        body |= {"title": "Too many contexts", "error": f"Too many contexts: {failure.message}"}
    return {"type": "error", "done": False, **body}


class Cartesia(Api):
    name = "cartesia"
    codes = {
        "overloaded": (503, _LIMITED),
        "too_many_sessions": (503, _LIMITED),
        "too_many_contexts": (429, _LIMITED),
        "rate_limited": (429, "rate_limited"),
        "key_limit_reached": (429, "rate_limited"),
    }

    def of_failure(self, failure: TurnFailure) -> Refusal:
        refusal = super().of_failure(failure)
        fault = failure.code in ("internal", "numerics") and not failure.retryable
        return replace(refusal, status=500) if fault else refusal

    def code_of(self, problem: RequestError | ProtocolError) -> str:
        missing = isinstance(problem, WrongField) and problem.reason == NOT_FOUND
        return NOT_FOUND if missing else problem.code

    def of_problem(self, problem: RequestError | ProtocolError) -> Refusal:
        if self.code_of(problem) == NOT_FOUND:
            return Refusal(404, NOT_FOUND, str(problem))
        return Refusal(400, RequestError.code, str(problem))

    def body(self, refusal: Refusal, request_id: str) -> dict[str, Any]:
        """Return the body of an error. Older versions of the API have the message in `error`."""
        title = _TITLES.get(refusal.status, "Error")
        return {
            "title": title,
            "message": refusal.message,
            "error": f"{title}: {refusal.message}",
            "error_code": refusal.code,
            "status_code": refusal.status,
            "request_id": request_id,
        }


API = Cartesia()
