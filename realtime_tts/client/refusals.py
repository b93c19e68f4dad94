"""Makes errors of what a server refuses, in a message or in an HTTP answer."""

from __future__ import annotations

from realtime_tts.client.unanswered import shown
from realtime_tts.errors import (
    HandshakeRefused,
    OverloadedError,
    RealtimeTTSError,
    RequestError,
    TurnError,
)
from realtime_tts.protocol.messages import ErrorMessage
from realtime_tts.protocol.parsing import ProtocolError, parse_server_message

_ADVICE = {
    401: "the server wants an API key and got none that it knows; pass api_key=",
    403: "the server does not let this client in, or do this",
    404: "there is no speech server at this path; give the URL of a realtime-tts server",
    429: "the server gets too many connections or requests from here",
    503: "the server has no capacity now or is not ready yet",
}

_RETRY_AFTER_MS = 1_000
"""Milliseconds to wait where the server has no capacity and names no time."""


def turn_error(said: ErrorMessage) -> RealtimeTTSError:
    """Return the error for a turn that the server ended with one."""
    text = f"{said.code}: {said.message}"
    return _not_now(said, text) or TurnError(text, said.code, said.retryable)


def session_error(said: ErrorMessage) -> RealtimeTTSError:
    """Return the error for settings, or a whole session, that the server refused."""
    text = f"{said.code}: {said.message}"
    return _not_now(said, text) or _request_error(said, text)


def http_error(
    url: str,
    status: int,
    body: bytes | bytearray,
    *,
    location: str | None = None,
    request: bool = False,
) -> RealtimeTTSError:
    """Return the error for an HTTP answer in place of a WebSocket, or with a status other than 2xx.
    `location`: where it redirects to. `request`: it may be about the request, and not only about
    who makes it."""
    said = _said(body)
    reason = _ADVICE.get(status, "the server refused")
    if location is not None and 300 <= status < 400:
        reason = f"redirects are not followed; this one leads to {location}, so give that URL"
    reason = f"{reason}: {said.message}" if said is not None else reason
    text = f"{shown(url)}: {reason} (HTTP {status})"
    refused = HandshakeRefused(text, status)
    if said is None:
        return refused
    if request and 400 <= status < 500 and status not in (401, 403):
        return _not_now(said, text) or _request_error(said, said.message)
    return _not_now(said, text) or refused


def _not_now(said: ErrorMessage, text: str) -> OverloadedError | None:
    """Return the error if the server says when to try again, or has no capacity."""
    wait_ms = said.retry_after_ms
    if wait_ms is None and said.code == OverloadedError.code:
        wait_ms = _RETRY_AFTER_MS
    return None if wait_ms is None else OverloadedError(text, wait_ms / 1000, said.code)


def _request_error(said: ErrorMessage, text: str) -> RequestError:
    error = RequestError(text)
    error.retryable = said.retryable
    return error


def _said(body: bytes | bytearray) -> ErrorMessage | None:
    """Return the `error` message in the body of a refusal, if it is one of ours."""
    try:
        message = parse_server_message(body.decode())
    except (ProtocolError, UnicodeDecodeError):
        return None  # a proxy's page, for example; the status says enough
    return message if isinstance(message, ErrorMessage) else None
