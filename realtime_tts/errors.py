"""Every error this package raises on purpose.

Each class has a `code`, the word that goes over the wire, and `retryable`.
"""

from __future__ import annotations

from typing import ClassVar


class RealtimeTTSError(Exception):
    """Base of all errors raised on purpose by this package."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False


class ConfigError(RealtimeTTSError):
    """A flag, environment variable or field has a value that cannot work."""

    code = "bad_config"


class CheckpointError(RealtimeTTSError):
    """A checkpoint folder is incomplete, inconsistent or of an unsupported kind."""

    code = "bad_checkpoint"


class VoiceError(RealtimeTTSError):
    """A voice file, an embedding or a recording is not what a voice can be made of."""

    code = "bad_voice"


class RequestError(RealtimeTTSError):
    """A turn asks for something the loaded checkpoint or server cannot do."""

    code = "bad_request"


class OverloadedError(RealtimeTTSError):
    """No capacity now. `retry_after` is in seconds."""

    code = "overloaded"
    retryable = True

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class EngineError(RealtimeTTSError):
    """The engine failed while it worked on a turn."""

    code = "engine_error"
    retryable = True


class NumericsError(EngineError):
    """One row produced NaN or Inf logits; only that row ends."""

    code = "numerics"


class ClientError(RealtimeTTSError):
    """Base of the Python client's errors."""

    code = "client_error"


class ConnectionLost(ClientError):
    """The WebSocket closed before the turn was done."""

    code = "connection_lost"
    retryable = True


class HandshakeRefused(ClientError):
    """The server refused the connection; `status` is the HTTP status, 0 if there was none."""

    code = "handshake_refused"

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class CertificateRefused(HandshakeRefused):
    """The server's certificate is not trusted, has expired, or is for another name."""

    code = "certificate_refused"


class TurnError(ClientError):
    """The server ended a turn with an error; `server_code` is the code it gave."""

    code = "turn_error"

    def __init__(self, message: str, server_code: str, server_retryable: bool = False) -> None:
        super().__init__(message)
        self.server_code = server_code
        self.server_retryable = server_retryable
