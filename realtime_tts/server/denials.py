"""Answers that refuse a request, or the upgrade to a WebSocket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response
from starlette.types import Message, Scope, Send

from realtime_tts.access.account import LIMIT_REACHED
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.messages import ErrorMessage
from realtime_tts.protocol.parsing import encode


def is_page(headers: Mapping[str, str]) -> bool:
    """Return whether a page asks for this WebSocket: it cannot read an answer that refuses it.

    `headers` have names in any case. Libraries that send an `Origin`, such as Python's
    websocket-client, can read it; every browser calls itself Mozilla.
    """
    return "origin" in headers and headers.get("user-agent", "").startswith("Mozilla/")


async def send_retry_after(send: Send, message: Message) -> None:
    """Send the message, with the header that says when to try again."""
    if message["type"] in ("http.response.start", "websocket.http.response.start"):
        message["headers"] = [*message.get("headers", ()), (b"retry-after", b"1")]
    await send(message)


def error_response(
    status: int,
    code: str,
    message: str,
    retry_after: int | None = None,
    *,
    fatal: bool = True,
    retryable: bool | None = None,
) -> Response:
    """Return an answer with the JSON `error` that a session would get. `retry_after`: seconds, None
    if unknown; `retryable`: whether trying again may help, by default if `retry_after` is given."""
    error = ErrorMessage(
        code=code,
        message=message,
        fatal=fatal,
        retryable=retry_after is not None if retryable is None else retryable,
        retry_after_ms=None if retry_after is None else retry_after * 1000,
    )
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    headers |= {} if retry_after is None else {"retry-after": str(retry_after)}
    return Response(encode(error), status, headers, media_type="application/json")


def refusal(failure: TurnFailure) -> Response:
    """Return the answer that refuses a session for this reason."""
    wait = -(-(failure.retry_after_ms or 0) // 1000)
    status = 429 if failure.code == LIMIT_REACHED else 503
    return error_response(status, failure.code, failure.message, wait)


async def send_denial(scope: Scope, send: Send, status: int, code: str, message: str) -> None:
    """Answer with an `error_response`."""
    await send_instead(error_response(status, code, message), scope, send)


async def send_instead(response: Response, scope: Scope, send: Send) -> None:
    """Send the response to a request that is not read, or to a WebSocket instead of the upgrade."""

    async def nothing_to_receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    await response(scope, nothing_to_receive, send)
