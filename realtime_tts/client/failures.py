"""What the server or the socket said, as the errors that callers get."""

from __future__ import annotations

from realtime_tts.client.inbox import Inbox
from realtime_tts.errors import (
    ConnectionLost,
    OverloadedError,
    RealtimeTTSError,
    RequestError,
    TurnError,
)
from realtime_tts.protocol.messages import ErrorMessage

_RETRY_AFTER_MS = 1_000
"""Where the server names no time."""


def turn_error(message: ErrorMessage) -> RealtimeTTSError:
    """The error for a turn which the server ended with one."""
    said = f"{message.code}: {message.message}"
    return _overload(message) or TurnError(said, message.code, message.retryable)


def session_error(message: ErrorMessage) -> RealtimeTTSError:
    """The error for settings, or a whole session, which the server refused."""
    return _overload(message) or RequestError(f"{message.code}: {message.message}")


def turn_lost(error: ConnectionLost, inbox: Inbox) -> ConnectionLost:
    """`error`, with how far this turn had come."""
    samples = inbox.samples_received
    if samples == 0 and inbox.bytes_received > 0:
        came = f"{inbox.bytes_received} bytes"
    else:
        came = f"{samples / inbox.audio.sample_rate:.2f} s"
    lost = ConnectionLost(
        f"{error}; {came} of speech of turn {inbox.turn_id} had come. Nothing is sent "
        "again: what the listener has not heard is for the caller to speak in a new turn"
    )
    lost.__cause__ = error
    return lost


def _overload(message: ErrorMessage) -> OverloadedError | None:
    if message.code != OverloadedError.code:
        return None
    return OverloadedError(message.message, (message.retry_after_ms or _RETRY_AFTER_MS) / 1000)
