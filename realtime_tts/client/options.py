"""The session settings a caller may give, and the `session.start` they become.

They are those of `protocol.settings.SessionSettings`, written out for editors and type checkers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypedDict, get_args, get_type_hints

import msgspec

from realtime_tts.errors import ConfigError
from realtime_tts.protocol.messages import SessionStart
from realtime_tts.protocol.parsing import BadMessage, convert
from realtime_tts.protocol.settings import SessionSettings


class PredictorOptions(TypedDict, total=False):
    """Sampling of codes 2 to 16 of a frame."""

    temperature: float | None
    top_k: int | None
    top_p: float | None


class SamplingOptions(TypedDict, total=False):
    """Sampling of the first code of a frame, and of the others in `predictor`.

    temperature 0 is greedy; top_k 0 and top_p 1 mean no limit.
    """

    temperature: float | None
    top_k: int | None
    top_p: float | None
    repetition_penalty: float | None
    predictor: PredictorOptions | None


class AudioOptions(TypedDict, total=False):
    """The format of the packets; what is left out is the encoding's default.

    `encoding`: pcm_s16le, pcm_f32le, pcm_mulaw, pcm_alaw, mp3, opus, aac or flac. `sample_rate` in
    hertz, `bit_rate` in bits per second, `packet_ms` for raw samples. `container`: raw or wav for
    samples, ogg or webm for opus.
    """

    encoding: str
    sample_rate: int
    container: str
    bit_rate: int | None
    packet_ms: int | None


class SessionOptions(TypedDict, total=False):
    """The settings of a session. The server chooses what is left out, and None resets one to that.
    True and False stand for "on" and "off".

    `model` is one of `ready.models`, if there are several; otherwise the voice decides. `seed`
    makes speech repeatable. `instructions` describe how to speak, where the checkpoint takes any.
    `text_filter`: whether markdown, emoji, URLs, tags and stage directions are left unspoken.
    `text_normalization`: whether numbers and abbreviations become words first. `lexicon`: words,
    and what to say for them; `lexicons`: stored ones, by name. `trim_silence`: whether the silence
    that the model begins with is left out. `loudness`: whether every voice and turn is brought to
    -16 LUFS. `pacing`: how much text is spoken as one where it arrives slowly. `speed`: 0.7 to 1.4;
    at 1.2 speech that takes six seconds takes five, at the same pitch. `resume`: whether the server
    sends what lets a turn go on when its socket is lost. `lead_ms`: how far ahead of the listener
    the server may send. `word_times`: whether the server reports when it speaks each word
    (`Turn.words`). `traceparent`: the parent of the turns' spans, where the server traces them and
    the turn has none of its own (`RealtimeTTS.turn`). `audio`: a format other than 24 kHz s16le.
    Lexicon and format are replaced as a whole.
    """

    model: str | None
    voice: str | None
    language: str | None
    instructions: str | None
    seed: int | None
    sampling: SamplingOptions | None
    text_filter: Literal["on", "off"] | bool | None
    text_normalization: Literal["auto", "on", "off"] | bool | None
    lexicon: dict[str, str] | None
    lexicons: list[str] | None
    layout: Literal["auto", "streaming", "full_text"] | None
    trim_silence: Literal["on", "off"] | bool | None
    loudness: Literal["on", "off"] | bool | None
    pacing: Literal["auto", "token", "clause", "sentence"] | None
    word_times: Literal["on", "off"] | bool | None
    resume: Literal["on", "off"] | bool | None
    speed: float | None
    lead_ms: int | None
    traceparent: str | None
    audio: AudioOptions | None


_WHOLE = ("audio", "lexicon")
"""Options that are replaced as a whole; the fields of `sampling` change one by one."""


def session_start(options: Mapping[str, Any]) -> SessionStart:
    """Return the message for `options`, where None resets one. Raises ConfigError."""
    _check_names(options)
    said = {name: _said(name, value) for name, value in options.items()}
    try:
        return convert({**said, "type": "session.start"}, SessionStart)
    except BadMessage as error:
        reason = str(error).removeprefix("session.start: ")
        raise ConfigError(f"a session option cannot be used: {reason}") from error


_NESTED = {"audio": AudioOptions, "sampling": SamplingOptions, "predictor": PredictorOptions}


def _check_names(options: Mapping[str, Any], within: str = "") -> None:
    """Raise ConfigError for names that no option has: a server passes over them."""
    known = (_NESTED[within] if within else SessionOptions).__annotations__
    for name in sorted(set(options) - set(known)):
        whose = f"`{within}`" if within else "a session"
        raise ConfigError(f"unknown option {name!r}; {whose} has: {', '.join(known)}")
    for name in _NESTED.keys() & options.keys():
        if isinstance(options[name], Mapping):
            _check_names(options[name], name)


@cache
def _switches() -> frozenset[str]:
    """Return the options that also take a boolean."""
    hints = get_type_hints(SessionOptions)
    return frozenset(name for name, hint in hints.items() if bool in get_args(hint))


def _said(name: str, value: object) -> object:
    """Return the value as the server takes it."""
    if isinstance(value, bool) and name in _switches():
        return "on" if value else "off"
    return value


def all_of(settings: SessionSettings) -> SessionStart:
    """Return the message that sets all of a session's settings to these."""
    return session_start(msgspec.to_builtins(settings))


def merged(options: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return `options` as the server has them after `changes`, without those that None resets."""
    result = {name: value for name, value in options.items() if value is not None}
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        elif name not in _WHOLE and isinstance(value, Mapping):
            result[name] = merged(result.get(name, {}), value)
        else:
            result[name] = value
    return result


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return what changes the options `old` into `new`: `merged(old, changes(old, new)) == new`."""
    result: dict[str, Any] = dict.fromkeys(name for name in old if name not in new)
    for name, value in new.items():
        before = old.get(name)
        if name not in _WHOLE and isinstance(value, Mapping) and value != before:
            result[name] = changes(before or {}, value)
        elif value != before:
            result[name] = value
    return result
