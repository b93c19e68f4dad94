"""What a client of Cartesia's API is told: chunks, times of words, ends and errors."""

from __future__ import annotations

import base64
import time
from dataclasses import replace
from typing import Any

from realtime_tts.dialects.api import Api, Refusal
from realtime_tts.dialects.timing import words_of
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.server.speech import SpokenSpan

_PARTIAL, _OK = 206, 200
_LIMITED = "concurrency_limited"
_TITLES = {
    400: "Bad request", 401: "Unauthorized", 403: "Forbidden", 404: "Not found",
    405: "Method not allowed", 429: "Too many requests", 500: "Internal error",
    503: "Service unavailable",
}  # fmt: skip


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
    """`done` is false, since LiveKit takes a true one for the end of its speech, and never looks at
    the error."""
    body = API.body(API.of_failure(failure), request_id)
    if failure.code == "too_many_contexts":
        body |= {"title": "Too many contexts", "error": f"Too many contexts: {failure.message}"}
    return {"type": "error", "done": False, **body}


class Cartesia(Api):
    """Cartesia's errors."""

    name = "cartesia"
    reading = ("GET",)
    codes = {
        "overloaded": (429, _LIMITED), "too_many_sessions": (429, _LIMITED),
        "too_many_contexts": (429, _LIMITED), "rate_limited": (429, "rate_limited"),
        "unauthorized": (401, "unauthorized"),
    }  # fmt: skip

    def of_failure(self, failure: TurnFailure) -> Refusal:
        refusal = super().of_failure(failure)
        fault = failure.code in ("internal", "numerics") and not failure.retryable
        return replace(refusal, status=500) if fault else refusal

    def of_problem(self, problem: RequestError | ProtocolError) -> Refusal:
        return Refusal(400, RequestError.code, str(problem))

    def body(self, refusal: Refusal, request_id: str) -> dict[str, Any]:
        """`error` is the message again, where older versions of the API have it."""
        title = _TITLES.get(refusal.status, "Error")
        return {
            "title": title, "message": refusal.message, "error": f"{title}: {refusal.message}",
            "error_code": refusal.code, "status_code": refusal.status, "request_id": request_id,
        }  # fmt: skip


API = Cartesia()
