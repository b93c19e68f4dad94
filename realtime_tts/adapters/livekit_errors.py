"""What the client raises, as the errors by which LiveKit Agents decides what to do next."""

from __future__ import annotations

from livekit.agents import APIConnectionError, APIError, APIStatusError, APITimeoutError

from realtime_tts.client.handshake import is_final
from realtime_tts.errors import (
    ConnectionLost,
    HandshakeRefused,
    OverloadedError,
    RealtimeTTSError,
    RequestError,
    TurnError,
)


def api_error(error: RealtimeTTSError) -> APIError:
    """The framework's error, by whose `retryable` it tries again or turns to another TTS."""
    message = str(error)
    match error:
        case OverloadedError():
            body = {"code": error.code, "retry_after": error.retry_after}
            return APIStatusError(message, status_code=503, body=body, retryable=True)
        case HandshakeRefused(status=0) if isinstance(error.__cause__, TimeoutError):
            return APITimeoutError(message)
        case HandshakeRefused(status=0) | ConnectionLost():
            return APIConnectionError(message)
        case HandshakeRefused():
            retryable = not is_final(error)
            return APIStatusError(message, status_code=error.status, retryable=retryable)
        case TurnError():
            status, again = (500, True) if error.server_retryable else (400, False)
            body = {"code": error.server_code}
            return APIStatusError(message, status_code=status, body=body, retryable=again)
        case RequestError():
            return APIStatusError(message, status_code=400, retryable=False)
    return APIError(message, retryable=error.retryable)
