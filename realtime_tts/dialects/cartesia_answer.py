"""What a client of Cartesia's API is told: chunks, times of words, ends and errors."""

from __future__ import annotations

import base64
import time
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import Scope, Send

from realtime_tts.dialects.refusals import retry_after
from realtime_tts.dialects.timing import words_of
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.server.auth import send_instead
from realtime_tts.server.speech import SpokenSpan

_PARTIAL, _OK = 206, 200
_STATUS = {
    "overloaded": (429, "Too many requests", "concurrency_limited"),
    "too_many_sessions": (429, "Too many requests", "concurrency_limited"),
    "too_many_contexts": (429, "Too many contexts", "concurrency_limited"),
    "rate_limited": (429, "Too many requests", "rate_limited"),
    "unauthorized": (401, "Unauthorized", "unauthorized"),
}
_TITLES = {400: "Bad request", 401: "Unauthorized", 403: "Forbidden", 404: "Not found"}


class Stopwatch:
    """`step_time`: milliseconds since the chunk before."""

    def __init__(self) -> None:
        self._at = time.monotonic()

    def step_ms(self) -> float:
        """Since the call before, or the start."""
        now = time.monotonic()
        step, self._at = now - self._at, now
        return round(step * 1000, 3)


def chunk(data: bytes, step_ms: float) -> dict[str, Any]:
    """Sound in the format that was asked for."""
    return {
        "type": "chunk", "data": base64.b64encode(data).decode(), "done": False,
        "status_code": _PARTIAL, "step_time": step_ms,
    }  # fmt: skip


def timestamps(span: SpokenSpan) -> dict[str, Any]:
    """The words of a span, in seconds."""
    words = words_of(span)
    return {
        "type": "timestamps",
        "done": False,
        "status_code": _PARTIAL,
        "word_timestamps": {
            "words": [word.text for word in words],
            "start": [round(word.start, 4) for word in words],
            "end": [round(word.end, 4) for word in words],
        },
    }


def flush_done(flush_id: int) -> dict[str, Any]:
    """All sound of the text up to a flush was sent; `flush_id` counts from 1."""
    return {
        "type": "flush_done", "done": False, "flush_done": True, "flush_id": flush_id,
        "status_code": _PARTIAL,
    }  # fmt: skip


def done(reason: str) -> dict[str, Any]:
    """LiveKit looks for `done`, others for the type. `reason` is ours, as in `turn.done`."""
    return {"type": "done", "done": True, "status_code": _OK, "reason": reason}


def error(failure: TurnFailure, request_id: str) -> dict[str, Any]:
    """`error` is the message again, where older versions of the API have it. `done` is false, since
    LiveKit takes a true one for the end of its speech, and never looks at the error."""
    status, title, code = _named(failure)
    return {
        "type": "error", "done": False, "title": title, "message": failure.message,
        "error": f"{title}: {failure.message}", "error_code": code, "status_code": status,
        "request_id": request_id,
    }  # fmt: skip


def http_error(failure: TurnFailure, request_id: str) -> JSONResponse:
    """The same over HTTP, where its status says that it is an error."""
    body = error(failure, request_id)
    del body["type"], body["done"]
    headers = {"x-request-id": request_id, **retry_after(failure)}
    return JSONResponse(body, body["status_code"], headers)


def wrong_method(found: str, allowed: str) -> JSONResponse:
    """405, for a path that takes another method."""
    body = {
        "title": "Method not allowed", "message": f"{found} is not for this path; use {allowed}",
        "error_code": "method_not_allowed", "status_code": 405,
    }  # fmt: skip
    return JSONResponse(body, 405, {"allow": allowed})


async def deny(scope: Scope, send: Send, status: int, code: str, message: str) -> None:
    """The gate's no, in this API's shape."""
    title = _TITLES.get(status, "Error")
    body = {
        "title": title, "message": message, "error": f"{title}: {message}",
        "error_code": code, "status_code": status,
    }  # fmt: skip
    await send_instead(JSONResponse(body, status), scope, send)


def _named(failure: TurnFailure) -> tuple[int, str, str]:
    if failure.code in _STATUS:
        return _STATUS[failure.code]
    if failure.code in ("going_away", "not_ready") or failure.retryable:
        return 503, "Service unavailable", failure.code
    if failure.code in ("internal", "numerics"):
        return 500, "Internal error", failure.code
    return 400, "Bad request", failure.code
