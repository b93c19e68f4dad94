"""What a failure says about the service, in Pipecat's words."""

from __future__ import annotations

from pipecat.utils.errors import ErrorCategory

from realtime_tts.errors import (
    ConfigError,
    ConnectionLost,
    HandshakeRefused,
    OverloadedError,
    RequestError,
    TurnError,
)


def category(error: Exception) -> ErrorCategory | None:
    """The category of one of our errors, None for others.

    INVALID_REQUEST and a refused key are permanent: Pipecat gives the service no more work until
    its settings change.
    """
    match error:
        case RequestError() | ConfigError() | TurnError(server_code="bad_request"):
            return ErrorCategory.INVALID_REQUEST
        case OverloadedError() | TurnError(server_code="queue_full"):
            return ErrorCategory.RATE_LIMIT
        case TurnError(server_code="text_too_long" | "turn_too_long"):
            return ErrorCategory.APPLICATION
        case TurnError():
            return ErrorCategory.SERVER
        case ConnectionLost() | HandshakeRefused(status=0):
            return ErrorCategory.CONNECTIVITY
    return None  # a refused handshake has its HTTP status, by which Pipecat knows
