"""What a client of Deepgram's API is told: messages of both sockets, errors of all routes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import Scope, Send

from realtime_tts.dialects.deepgram_request import Wanted
from realtime_tts.dialects.fields import SPEED_IS_ONE
from realtime_tts.dialects.refusals import retry_after
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.messages import CloseCode
from realtime_tts.server.auth import send_instead

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
_STATUS = {
    "overloaded": (429, "TOO_MANY_REQUESTS"),
    "too_many_sessions": (429, "TOO_MANY_REQUESTS"),
    "bad_request": (400, "Bad Request"),
    "bad_json": (400, "Bad Request"),
    "too_large": (413, "PAYLOAD_TOO_LARGE"),
    "method_not_allowed": (405, "METHOD_NOT_ALLOWED"),
    "internal": (500, "INTERNAL_SERVER_ERROR"),
    "numerics": (500, "INTERNAL_SERVER_ERROR"),
}
_DENIALS = {401: "INVALID_AUTH", 403: "INSUFFICIENT_PERMISSIONS"}
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


def error_body(failure: TurnFailure, request_id: str) -> dict[str, Any]:
    """The body of an error over HTTP."""
    return _body(_named(failure)[1], failure.message, request_id)


def error_headers(message: str, request_id: str) -> dict[str, str]:
    """Clients of the sockets read why they were refused in `dg-error`."""
    return {"dg-error": header_value(message), "dg-request-id": request_id}


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


def http_error(failure: TurnFailure, request_id: str) -> JSONResponse:
    """An error over HTTP; its headers say the same as its body."""
    headers = error_headers(failure.message, request_id) | retry_after(failure)
    status = _named(failure)[0]
    if status == 405:
        headers["allow"] = "POST"
    return JSONResponse(error_body(failure, request_id), status, headers)


async def deny(scope: Scope, send: Send, status: int, code: str, message: str) -> None:
    """The gate's no, in this API's shape."""
    request_id = str(uuid.uuid4())
    body = _body(_DENIALS.get(status, code), message, request_id)
    response = JSONResponse(body, status, error_headers(message, request_id))
    await send_instead(response, scope, send)


def _body(code: str, message: str, request_id: str) -> dict[str, Any]:
    return {"err_code": code, "err_msg": message, "request_id": request_id}


def _named(failure: TurnFailure) -> tuple[int, str]:
    return _STATUS.get(failure.code, (503 if failure.retryable else 400, failure.code))
