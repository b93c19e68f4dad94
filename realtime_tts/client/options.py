"""The session settings a caller may give, and the `session.start` they become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

import msgspec

from realtime_tts.errors import ConfigError
from realtime_tts.protocol.messages import SessionStart


class PredictorOptions(TypedDict, total=False):
    """Sampling of codes 2 to 16 of a frame."""

    temperature: float
    top_k: int
    top_p: float


class SamplingOptions(TypedDict, total=False):
    """Sampling of the first code of a frame, and of the others in `predictor`.

    temperature 0 is greedy; top_k 0 and top_p 1 mean no limit.
    """

    temperature: float
    top_k: int
    top_p: float
    repetition_penalty: float
    predictor: PredictorOptions


class AudioOptions(TypedDict, total=False):
    """The format of the packets; what is left out is the encoding's own.

    `encoding`: pcm_s16le, pcm_f32le, pcm_mulaw, pcm_alaw, mp3, opus, aac or flac. `sample_rate` in
    hertz, `bit_rate` in bits per second, `packet_ms` for raw samples. `container`: raw or wav for
    samples, ogg or webm for opus.
    """

    encoding: str
    sample_rate: int
    container: str
    bit_rate: int
    packet_ms: int


class SessionOptions(TypedDict, total=False):
    """What a session can set; what is left out is the server's choice.

    `model` is one of `ready.models`, if there are several; else the voice picks. `seed` makes
    speech repeatable. `instructions` describe the manner, where the checkpoint takes
    any. `text_filter`: whether markdown, emoji and URLs are left unspoken.
    `text_normalization`: whether numbers and abbreviations become words first. `lexicon`: words,
    and what to say for them. `lead_ms`: how far ahead of the listener the server may send.
    `word_times`: whether the server says when it speaks which word, by estimate (`Turn.words`).
    `audio`: a format other than 24 kHz s16le. Lexicon and format are replaced as a whole.
    """

    model: str
    voice: str
    language: str
    instructions: str
    seed: int
    sampling: SamplingOptions
    text_filter: Literal["on", "off"]
    text_normalization: Literal["auto", "on", "off"]
    lexicon: dict[str, str]
    layout: Literal["auto", "streaming", "full_text"]
    lead_ms: int
    word_times: Literal["on", "off"]
    audio: AudioOptions


def session_start(options: Mapping[str, Any]) -> SessionStart:
    """The message for `options`; None counts as left out. Raises ConfigError."""
    given = {name: value for name, value in options.items() if value is not None}
    unknown = sorted(set(given) - set(SessionOptions.__annotations__))
    if unknown:
        known = ", ".join(SessionOptions.__annotations__)
        raise ConfigError(f"unknown option {unknown[0]!r}; a session has: {known}")
    try:
        return msgspec.convert(given | {"type": "session.start"}, SessionStart)
    except msgspec.ValidationError as error:
        raise ConfigError(f"a session option cannot be used: {error}") from error


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Overlay `first` with `second`, and `sampling` field by field, as the server does."""
    result = dict(first)
    for name, value in second.items():
        old = result.get(name)
        whole = name in ("audio", "lexicon")
        if not whole and isinstance(old, Mapping) and isinstance(value, Mapping):
            value = merged(old, value)
        if value is not None:
            result[name] = value
    return result
