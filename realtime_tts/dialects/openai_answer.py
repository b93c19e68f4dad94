"""What a client of OpenAI's API is told: speech, events, or an error in its shape."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.types import Scope, Send

from realtime_tts.dialects.http import new_request_id
from realtime_tts.dialects.openai_request import BadRequest
from realtime_tts.dialects.refusals import retry_after, send_instead
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.parsing import ProtocolError

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
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        self.body = {
            "error": {"message": message, "type": _kind(status), "param": param, "code": code}
        }

    def response(self, request_id: str) -> Response:
        """The error as an answer over HTTP."""
        headers = {**self.headers, "x-request-id": request_id}
        return JSONResponse(self.body, self.status, headers)


def _kind(status: int) -> str:
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"


def from_problem(problem: RequestError | ProtocolError) -> ApiError:
    """What is wrong with a request."""
    if isinstance(problem, BadRequest):
        status, param, code = problem.status, problem.param, problem.reason
        return ApiError(status, str(problem), param=param, code=code)
    return ApiError(400, str(problem))


def from_failure(failure: TurnFailure) -> ApiError:
    """429 where others are in the way, 503 where another try may help, else 500."""
    if failure.code in _TOO_MANY:
        status = 429
    else:
        status = 503 if failure.retryable else 500
    return ApiError(status, failure.message, code=failure.code, headers=retry_after(failure))


def wrong_method(found: str, *allowed: str) -> ApiError:
    """405, for a path that takes other methods."""
    message = f"{found} is not allowed here; use {allowed[0]}"
    return ApiError(405, message, headers={"allow": ", ".join(allowed)})


async def deny(scope: Scope, send: Send, status: int, code: str, message: str) -> None:
    """The gate's no, in this API's shape."""
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    code = "invalid_api_key" if status == 401 else code
    error = ApiError(status, message, code=code, headers=headers)
    await send_instead(error.response(new_request_id()), scope, send)


def event_bytes(data: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(data).encode() + b"\n\n"
