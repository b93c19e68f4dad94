"""What a client of Deepgram's API asks for, parsed and checked, and the messages it gets."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from typing import Any

from realtime_tts.access.account import Account
from realtime_tts.audio.encoders import require
from realtime_tts.audio.formats import audio_format
from realtime_tts.dialects.api import Api, Refusal
from realtime_tts.dialects.catalogue import our_language, our_model, own_voice
from realtime_tts.dialects.fields import AskedSpeed, number_in
from realtime_tts.dialects.fields import text_of as text_in
from realtime_tts.engine.interface import EngineInfo
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.messages import SAMPLE_RATE, CloseCode
from realtime_tts.protocol.parsing import TooLarge
from realtime_tts.protocol.settings import Limits, SessionSettings
from realtime_tts.server.front import Front

STREAMED = {"linear16": "pcm_s16le", "mulaw": "pcm_mulaw", "alaw": "pcm_alaw"}
"""Encodings that have no container, and our names for them."""
WHOLE = {**STREAMED, "mp3": "mp3", "opus": "opus", "flac": "flac", "aac": "aac"}
"""Encodings of speech over HTTP, and our names for them."""

MASCULINE = frozenset(
    "alvaro angus apollo aquila arcas aries atlas cesare dionisio draco ebisu elio fabian flavio "
    "fujin hector helios hermes hyperion javier julius jupiter lars luciano mars neptune nestor "
    "odysseus orion orpheus perseus pluto roman sander saturn sirio valerio zeus".split()
)
"""Aura's voices that Deepgram lists as masculine; `OUR_MASCULINE` speak for them."""
OUR_MASCULINE = ("ray", "ryan", "aiden", "uncle_fu")

_MODEL = re.compile(
    r"(?:aura(?:-\d+)?|flux)-(?P<voice>[^\W\d].*?)(?:-(?P<language>[a-z]{2}(?:-[a-z]{2})?))?",
    re.IGNORECASE,
)
_LARGEST = 10_000_000  # for any whole number in an address


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an address asks for. `model`: as the client named it, for the answers."""

    model: str
    settings: SessionSettings
    warning: str
    """A warning about a speed that this server does not have; empty if there is none."""


def socket_wanted(query: Mapping[str, str], front: Front, account: Account) -> Wanted:
    """Parse the address of a socket, which sends bare samples. Raises RequestError."""
    encoding = query.get("encoding") or "linear16"
    if encoding.lower() not in STREAMED:
        hint = "; compressed speech is to be had over HTTP" if encoding.lower() in WHOLE else ""
        raise _unknown("encoding", encoding, f"over a WebSocket it is {', '.join(STREAMED)}{hint}")
    container = query.get("container") or "none"
    if container.lower() != "none":
        raise _unknown("container", container, "over a WebSocket there is none; leave it out")
    return _wanted(query, front, account, STREAMED[encoding.lower()], "raw")


def http_wanted(query: Mapping[str, str], front: Front, account: Account) -> Wanted:
    """Parse the address of a request, which gets a file, by default an mp3. Raises RequestError."""
    if query.get("callback"):
        raise RequestError("`callback` is not for this server: take the speech from the answer")
    encoding = (query.get("encoding") or "mp3").lower()
    if encoding not in WHOLE:
        raise _unknown("encoding", encoding, f"it is one of {', '.join(WHOLE)}")
    asked = (query.get("container") or "").lower()
    if encoding not in STREAMED:
        container = None if asked in ("", "none") else asked
    else:
        container = {"": "wav", "none": "raw"}.get(asked, asked)
    bit_rate = _number(query, "bit_rate") if encoding in ("mp3", "opus", "aac") else None
    return _wanted(query, front, account, WHOLE[encoding], container, bit_rate, longest_lead=True)


def text_of(message: Mapping[str, Any], limits: Limits) -> str:
    """Return the text to speak. Raises RequestError, and TooLarge, which has a code of its own."""
    text, most = text_in(message.get("text")), limits.max_text_chars
    if len(text) > most:
        raise TooLarge(f"`text` must have at most {most} characters, it has {len(text)}")
    return text


def our_voice(name: str, voices: Sequence[str], info: EngineInfo) -> tuple[str | None, str | None]:
    """Return the voice of this server that a model of Deepgram's means, and our name of its
    language.

    `ava`, `aura-2-ava-en` and `flux-ava-en` are our voice `ava`. Deepgram's own masculine voices
    get one of ours, all others the checkpoint's default (None). Raises RequestError for other
    names.
    """
    found = own_voice(voices, name)
    if found is not None:
        return found, None
    theirs = _MODEL.fullmatch(name)
    if theirs is None:
        raise RequestError(
            f"there is no model {name[:40]!r}; this server has {', '.join(voices) or 'one voice'}, "
            "and takes Deepgram's, such as aura-2-thalia-en, for voices of its own"
        )
    language = our_language(theirs["language"], info)
    voice = theirs["voice"].lower()
    return own_voice(voices, voice, *(OUR_MASCULINE if voice in MASCULINE else ())), language


def _wanted(
    query: Mapping[str, str],
    front: Front,
    account: Account,
    encoding: str,
    container: str | None,
    bit_rate: int | None = None,
    *,
    longest_lead: bool = False,
) -> Wanted:
    audio = audio_format(encoding, _number(query, "sample_rate"), container, bit_rate)
    require(audio)
    named, voice, language = query.get("model") or "", None, None
    model = our_model(named, front.info)
    if named and model is None:
        voice, language = our_voice(named, front.voice_names(account), front.info)
    speed = _speed(query)
    settings = front.settings(
        longest_lead=longest_lead,
        audio=audio,
        model=model,
        voice=voice,
        language=language,
        speed=speed.given,
    )
    told = named or account.known(settings.voice) or front.info.model
    return Wanted(told, settings, speed.warning)


def _speed(query: Mapping[str, str]) -> AskedSpeed:
    asked = query.get("speed") or "1"
    with suppress(ValueError):
        if isfinite(speed := float(asked)):
            return AskedSpeed.nearest(speed)
    raise _unknown("speed", asked, "it is a number")


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    number = number_in(text, _LARGEST)
    if number is None:
        raise _unknown(name, text, "it is a whole number")
    return number


def _unknown(name: str, found: str, hint: str) -> RequestError:
    return RequestError(f"`{name}` cannot be {found[:40]!r}: {hint}")


_UNPARSEABLE, _INVALID, _LIMIT, _TOO_BIG = "MESSAGE-0000", "DATA-0000", "DATA-0001", "BIG-0000"
_INTERNAL = "NET-0000"
_UNSUPPORTED_DATA = 1003
# Our code of a failure: the API's code, and the code of the close that follows.
_FATAL = {
    "bad_json": (_UNPARSEABLE, _UNSUPPORTED_DATA),
    "bad_request": (_UNPARSEABLE, _UNSUPPORTED_DATA),
    "unknown_type": (_INVALID, CloseCode.POLICY),
    "too_large": (_TOO_BIG, CloseCode.TOO_BIG),
    "rate_limited": (_LIMIT, CloseCode.POLICY),
    "too_many_errors": (_LIMIT, CloseCode.POLICY),
    "going_away": (_INTERNAL, CloseCode.GOING_AWAY),
}
NO_CONTROLS = {"pronunciations_applied": 0, "breaks_applied": 0, "pronunciation_warnings": 0}


def message(kind: str, **fields: Any) -> str:
    """Return a message of this type."""
    return json.dumps({"type": kind, **fields})


def model_uuid(name: str) -> str:
    """Return a UUID that is always the same for a name."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"model:{name}"))


def greeting(kind: str, request_id: str, wanted: Wanted, version: str, **uuid: Any) -> str:
    """Return the first message of a socket. `version` is the loaded checkpoint."""
    named = {"model_name": wanted.model, "model_version": version}
    return message(kind, request_id=request_id, **named, **uuid)


def _milliseconds(seconds: float) -> int:
    """Return how long a whole number of samples is. `seconds` may be a difference of two times,
    and a little off: where half a millisecond is left, that must not decide."""
    return round(round(seconds * SAMPLE_RATE) * 1000 / SAMPLE_RATE)


def account(speech_id: str, seconds: float, chars: int) -> dict[str, Any]:
    """Return the numbers of a turn of `/v2/speak`."""
    return {
        "speech_id": speech_id,
        "audio_duration_ms": _milliseconds(seconds),
        "input_character_count": chars,
        "billable_character_count": chars,
        "controls_applied": NO_CONTROLS,
    }


def interrupted(played_ms: int, split: tuple[str, str] | None, found: Mapping[str, Any]) -> str:
    """Return the answer to an interrupt. `split`: the text that was heard and the text that was
    not, if the client said how far it played."""
    texts = {} if split is None else {"text_spoken": split[0], "text_remaining": split[1]}
    return message("SpeechInterrupted", audio_played_ms=played_ms, **texts, metadata=found)


def session_metadata(seconds: float, chars: int) -> str:
    """Return the numbers of a session of `/v2/speak`, its last message."""
    return message(
        "SessionMetadata",
        total_audio_duration_ms=_milliseconds(seconds),
        total_input_character_count=chars,
        total_billable_character_count=chars,
    )


def not_configured(description: str, speed: float) -> str:
    """Return the answer to a `Configure` that is refused for its speed."""
    fault = {"code": "SPEED_OUT_OF_RANGE", "field": "speed", "value": speed}
    return message("ConfigureFailure", **fault, description=description)


def warning(code: str, description: str) -> str:
    """Return a warning. LiveKit reads `warn_msg`, which older versions of the API had."""
    return message(
        "Warning", code=code, description=description, warn_code=code, warn_msg=description
    )


def error(failure: TurnFailure) -> str:
    """Return an error; `reason` is our own code."""
    code, _ = fatal(failure)
    return message("Error", code=code, description=failure.message, reason=failure.code)


def fatal(failure: TurnFailure) -> tuple[str, int]:
    """Return the API's code of an error, and the code of the close that follows it."""
    return _FATAL.get(failure.code, (_INTERNAL, CloseCode.INTERNAL))


def speech_headers(request_id: str, wanted: Wanted, chars: int) -> dict[str, str]:
    """Return the headers of speech over HTTP."""
    return {
        "dg-request-id": request_id,
        "dg-model-name": header_value(wanted.model),
        "dg-model-uuid": model_uuid(wanted.model),
        "dg-char-count": str(chars),
    }


def header_value(text: str) -> str:
    """Return what a header can hold of a text: one line of printable ASCII."""
    line = " ".join(text.split())[:1000]
    return "".join(char if char.isascii() and char.isprintable() else "?" for char in line)


class Deepgram(Api):
    """Deepgram's errors. Clients of the sockets read why they were refused in `dg-error`."""

    name = "deepgram"
    codes = {
        "overloaded": (503, "TOO_MANY_REQUESTS"),
        "too_many_sessions": (503, "TOO_MANY_REQUESTS"),
        "key_limit_reached": (429, "TOO_MANY_REQUESTS"),
        "bad_request": (400, "Bad Request"),
        "bad_json": (400, "Bad Request"),
        "too_large": (413, "PAYLOAD_TOO_LARGE"),
        "internal": (500, "INTERNAL_SERVER_ERROR"),
        "numerics": (500, "INTERNAL_SERVER_ERROR"),
    }
    denials = {401: "INVALID_AUTH", 403: "INSUFFICIENT_PERMISSIONS"}
    method_code = "METHOD_NOT_ALLOWED"
    method_hint = "{} is not for this path; use {}, or a WebSocket"

    def body(self, refusal: Refusal, request_id: str) -> dict[str, Any]:
        return {"err_code": refusal.code, "err_msg": refusal.message, "request_id": request_id}

    def headers(self, refusal: Refusal, request_id: str) -> dict[str, str]:
        return {"dg-error": header_value(refusal.message), "dg-request-id": request_id}

    def new_request_id(self) -> str:
        return str(uuid.uuid4())


API = Deepgram()
