"""What a client of OpenAI's API is told: speech, events, or an error in its shape."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.types import Scope, Send

from realtime_tts.dialects.http import abort
from realtime_tts.logs import event
from realtime_tts.protocol.effects import TurnFailure

log = logging.getLogger(__name__)

_TOO_MANY = frozenset({"overloaded", "too_many_sessions"})
_EVENTS = "text/event-stream"


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


class Answer:
    """One response, and how to fail it: by a status while there is none, else as it can be."""

    def __init__(self, scope: Scope, send: Send, request_id: str) -> None:
        self.request_id = request_id
        self._scope = scope
        self._send = send
        self._media_type: str | None = None  # of the body that was begun

    async def send_all(self, media_type: str, pieces: AsyncIterator[bytes]) -> None:
        """200 with the first piece, and then all of them as they come."""
        async for piece in pieces:
            if self._media_type is None:
                self._media_type = media_type
                await self._start(media_type)
            if piece:
                await self._body(piece, more=True)
        await self._body(b"", more=False)

    async def fail(self, error: ApiError) -> None:
        event(log, logging.INFO, "openai.error", request=self.request_id, status=error.status)
        if self._media_type is None:
            await error.response(self.request_id)(self._scope, _nothing_to_receive, self._send)
            return
        if self._media_type == _EVENTS:
            await self._body(event_bytes({"type": "error", **error.body}), more=True)
        await abort(self._scope, "speech_failed")  # LiveKit knows no `error`, but it sees this

    async def _start(self, media_type: str) -> None:
        headers = [
            (b"content-type", media_type.encode()),
            (b"cache-control", b"no-cache"),
            (b"x-request-id", self.request_id.encode()),
        ]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _body(self, body: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


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


def new_request_id() -> str:
    """What `x-request-id` says, and the log."""
    return f"req_{secrets.token_hex(12)}"


async def _nothing_to_receive() -> dict[str, Any]:
    return {"type": "http.disconnect"}
