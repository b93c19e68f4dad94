"""What a client of Deepgram's API is told: messages of both sockets, errors of all routes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from realtime_tts.dialects.api import Api, Refusal
from realtime_tts.dialects.deepgram_request import Wanted
from realtime_tts.dialects.fields import SPEED_IS_ONE
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.messages import CloseCode

_UNPARSEABLE, _INVALID, _LIMIT, _TOO_BIG = "MESSAGE-0000", "DATA-0000", "DATA-0001", "BIG-0000"
_INTERNAL = "NET-0000"
_UNSUPPORTED_DATA = 1003
# What we call it: what the API calls it, and the code of the close that follows.
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
    """One message of this type."""
    return json.dumps({"type": kind, **fields})


def model_uuid(name: str) -> str:
    """The same for the same name, always."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"model:{name}"))


def metadata(request_id: str, wanted: Wanted, version: str) -> str:
    """The greeting of `/v1/speak`. `version` is the loaded checkpoint."""
    return message(
        "Metadata", request_id=request_id, model_name=wanted.model, model_version=version,
        model_uuid=model_uuid(wanted.model),
    )  # fmt: skip


def connected(request_id: str, wanted: Wanted, version: str) -> str:
    """The greeting of `/v2/speak`."""
    return message(
        "Connected", request_id=request_id, model_name=wanted.model, model_version=version,
        model_uuids=[model_uuid(wanted.model)],
    )  # fmt: skip


def account(speech_id: str, seconds: float, chars: int) -> dict[str, Any]:
    """What a turn of `/v2/speak` came to."""
    return {
        "speech_id": speech_id, "audio_duration_ms": round(seconds * 1000),
        "input_character_count": chars, "billable_character_count": chars,
        "controls_applied": NO_CONTROLS,
    }  # fmt: skip


def interrupted(played_ms: int, split: tuple[str, str] | None, found: Mapping[str, Any]) -> str:
    """`split`: the text that was heard and the text that was not, if the client said how far."""
    texts = {} if split is None else {"text_spoken": split[0], "text_remaining": split[1]}
    return message("SpeechInterrupted", audio_played_ms=played_ms, **texts, metadata=found)


def session_metadata(seconds: float, chars: int) -> str:
    """What a session of `/v2/speak` came to; its last message."""
    return message(
        "SessionMetadata", total_audio_duration_ms=round(seconds * 1000),
        total_input_character_count=chars, total_billable_character_count=chars,
    )  # fmt: skip


def not_configured(code: str, description: str, value: float | None = None) -> str:
    """The answer to one that was not; `value` is the speed it asked for."""
    found = {} if value is None else {"value": value}
    return message("ConfigureFailure", code=code, field="speed", **found, description=description)


def warning(code: str, description: str) -> str:
    """LiveKit reads `warn_msg`, which older versions of the API had."""
    return message(
        "Warning", code=code, description=description, warn_code=code, warn_msg=description
    )


def speed_warning() -> str:
    """For an address that asks for another speed than 1."""
    return warning("SPEED_NOT_SUPPORTED", SPEED_IS_ONE)


def error(failure: TurnFailure) -> str:
    """`reason` is our own code."""
    code, _ = fatal(failure)
    return message("Error", code=code, description=failure.message, reason=failure.code)


def fatal(failure: TurnFailure) -> tuple[str, int]:
    """The API's code of an error, and that of the close which follows it."""
    return _FATAL.get(failure.code, (_INTERNAL, CloseCode.INTERNAL))


def speech_headers(request_id: str, wanted: Wanted, chars: int) -> dict[str, str]:
    """What is said of speech over HTTP beside the speech."""
    return {
        "dg-request-id": request_id, "dg-model-name": header_value(wanted.model),
        "dg-model-uuid": model_uuid(wanted.model), "dg-char-count": str(chars),
    }  # fmt: skip


def header_value(text: str) -> str:
    """What a header can hold of it: one line of ASCII that can be printed."""
    line = " ".join(text.split())[:1000]
    return "".join(char if char.isascii() and char.isprintable() else "?" for char in line)


class Deepgram(Api):
    """Deepgram's errors. Clients of the sockets read why they were refused in `dg-error`."""

    name = "deepgram"
    codes = {
        "overloaded": (429, "TOO_MANY_REQUESTS"),
        "too_many_sessions": (429, "TOO_MANY_REQUESTS"),
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
