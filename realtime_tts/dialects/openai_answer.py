"""What a client of OpenAI's API is told: speech, events, or an error in its shape."""

from __future__ import annotations

import json
import logging
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.types import Scope, Send

from realtime_tts.dialects.http import Reply, new_request_id
from realtime_tts.logs import event
from realtime_tts.protocol.effects import TurnFailure

log = logging.getLogger(__name__)

_TOO_MANY = frozenset({"overloaded", "too_many_sessions"})


class ApiError(Exception):
    """What the client is told instead of speech, in OpenAI's words."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after_ms: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        if retry_after_ms is not None:
            self.headers["retry-after"] = str(max(1, -(-retry_after_ms // 1000)))
        self.body = {
            "error": {"message": message, "type": _kind(status), "param": param, "code": code}
        }

    def response(self, request_id: str) -> Response:
        headers = {**self.headers, "x-request-id": request_id}
        return JSONResponse(self.body, self.status, headers)


def _kind(status: int) -> str:
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"


async def fail(reply: Reply, error: ApiError) -> None:
    """A status while there is none; else an event, where there are events, and a cut connection:
    LiveKit's client knows no `error`, but it sees that."""
    event(log, logging.INFO, "openai.error", request=reply.request_id, status=error.status)
    told = event_bytes({"type": "error", **error.body})
    await reply.refuse(error.response(reply.request_id), told, cut=True)


def from_failure(failure: TurnFailure) -> ApiError:
    """429 where others are in the way, 503 where another try may help, else 500."""
    if failure.code in _TOO_MANY:
        status = 429
    else:
        status = 503 if failure.retryable else 500
    retry_after_ms = failure.retry_after_ms
    return ApiError(status, failure.message, code=failure.code, retry_after_ms=retry_after_ms)


async def deny(scope: Scope, send: Send, status: int, code: str, message: str) -> None:
    """The gate's no, in this API's shape."""
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    code = "invalid_api_key" if status == 401 else code
    error = ApiError(status, message, code=code, headers=headers)
    await error.response(new_request_id())(scope, _nothing_to_receive, send)


def event_bytes(data: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(data).encode() + b"\n\n"


async def _nothing_to_receive() -> dict[str, Any]:
    return {"type": "http.disconnect"}
