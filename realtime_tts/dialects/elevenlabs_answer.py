"""What a client of ElevenLabs' API is told: sound, times of characters, ends and errors."""

from __future__ import annotations

import base64
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Scope, Send

from realtime_tts.dialects import refusals
from realtime_tts.dialects.elevenlabs_request import Unfit
from realtime_tts.dialects.refusals import retry_after
from realtime_tts.dialects.timing import Timed, characters_of
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.messages import CloseCode
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.server.auth import Denial, send_instead
from realtime_tts.server.front import GOING_AWAY
from realtime_tts.server.speech import SpokenSpan

_BUSY = {
    "overloaded": "system_busy",
    "too_many_sessions": "too_many_concurrent_requests",
    "too_many_contexts": "max_active_conversations",
    "rate_limited": "rate_limit_exceeded",
}
_FAULTS = frozenset({"internal", "numerics"})


# Over a WebSocket.


def sound(data: bytes) -> dict[str, Any]:
    """Sound in the format of the address."""
    audio = base64.b64encode(data).decode()
    return {"audio": audio, "isFinal": False, "alignment": None, "normalizedAlignment": None}


def times(span: SpokenSpan, since_ms: int) -> dict[str, Any]:
    """The characters of a span, in milliseconds after `since_ms` of the context's sound."""
    starts, lengths = [], []
    for one in characters_of(span):
        start, end = round(one.start * 1000), round(one.end * 1000)
        starts.append(start - since_ms)
        lengths.append(end - start)
    alignment = {
        "chars": list(span.text), "charStartTimesMs": starts, "charDurationsMs": lengths,
    }  # fmt: skip
    return {"audio": "", "isFinal": False, "alignment": alignment, "normalizedAlignment": alignment}


def final() -> dict[str, Any]:
    """The end of a context, or of a socket of one text."""
    return {"audio": None, "isFinal": True, "alignment": None, "normalizedAlignment": None}


def error(failure: TurnFailure) -> dict[str, Any]:
    """`code` is that of the close, if one follows."""
    name = name_of(failure)
    return {"message": failure.message, "error": name, "code": int(close_code(failure))}


def close_code(failure: TurnFailure) -> CloseCode:
    """What a socket ends with that ends for this."""
    if failure.code == GOING_AWAY:
        return CloseCode.GOING_AWAY
    if failure.code in _FAULTS:
        return CloseCode.INTERNAL
    busy = failure.retryable or failure.code in _BUSY
    return CloseCode.TRY_AGAIN if busy else CloseCode.POLICY


def close_reason(failure: TurnFailure) -> str:
    """A client that was sending when the socket ended may see nothing but this."""
    return refusals.close_reason(f"{name_of(failure)}: {failure.message}")


# Over HTTP.


def seconds(characters: list[Timed]) -> dict[str, Any]:
    """Characters with their seconds, as the routes with timestamps have them."""
    return {
        "characters": [one.text for one in characters],
        "character_start_times_seconds": [round(one.start, 3) for one in characters],
        "character_end_times_seconds": [round(one.end, 3) for one in characters],
    }


def detail(status: str, message: str, request_id: str = "") -> dict[str, Any]:
    """The body of every error."""
    return {"detail": {"status": status, "message": message, "request_id": request_id}}


def http_error(failure: TurnFailure, request_id: str) -> JSONResponse:
    """Speech that is not to be had now, or went wrong."""
    headers = {"x-request-id": request_id, **retry_after(failure)}
    if failure.code in _BUSY:
        status = 429
    elif failure.code in _FAULTS:
        status = 500
    else:
        status = 503 if failure.retryable else 400
    return JSONResponse(detail(name_of(failure), failure.message, request_id), status, headers)


def bad_request(problem: RequestError | ProtocolError, request_id: str) -> JSONResponse:
    """A request that cannot be taken."""
    status = problem.status if isinstance(problem, Unfit) else 400
    body = detail(reason_of(problem), str(problem), request_id)
    return JSONResponse(body, status, {"x-request-id": request_id})


def wrong_method(found: str, allowed: str) -> JSONResponse:
    """405, for a path that takes another method."""
    body = detail("method_not_allowed", f"{found} is not for this path; use {allowed}")
    return JSONResponse(body, 405, {"allow": allowed})


def reason_of(problem: RequestError | ProtocolError) -> str:
    """The API's word for it."""
    return problem.reason if isinstance(problem, Unfit) else "invalid_request"


async def deny(scope: Scope, send: Send, status: int, code: str, message: str) -> None:
    """The gate's no, in this API's shape."""
    body = detail("invalid_api_key" if status == 401 else code, message)
    await send_instead(JSONResponse(body, status), scope, send)


def is_client(scope: Scope) -> bool:
    """Whether a client of this API asks, where a path is another API's as well.

    Their key has a header of its own; without a key, their packages say who they are.
    """
    headers = Headers(scope=scope)
    return "xi-api-key" in headers or "elevenlabs" in headers.get("x-fern-sdk-name", "").lower()


def deny_or(other: Denial) -> Denial:
    """Each client gets the no of its own API."""

    async def choose(scope: Scope, send: Send, status: int, code: str, message: str) -> None:
        chosen = deny if is_client(scope) else other
        await chosen(scope, send, status, code, message)

    return choose


def name_of(failure: TurnFailure) -> str:
    """The API's word for it."""
    if failure.code == "unauthorized":
        return "invalid_api_key"
    return _BUSY.get(failure.code, failure.code)
