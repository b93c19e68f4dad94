"""Every error this package raises on purpose."""

from __future__ import annotations

from typing import ClassVar


class RealtimeTTSError(Exception):
    """Base of all errors raised on purpose by this package.

    A subclass has a `code`, the word that goes over the wire, and may be `retryable`: the same
    request may succeed later. Otherwise it has its base's. An instance may set its own `retryable`.
    """

    code: ClassVar[str] = "error"
    retryable: bool = False

    def __init_subclass__(cls, code: str | None = None, retryable: bool = False) -> None:
        super().__init_subclass__()
        cls.code = cls.code if code is None else code
        cls.retryable = cls.retryable or retryable


class ConfigError(RealtimeTTSError, code="bad_config"):
    """A flag, environment variable or field has a value that cannot work."""


class CheckpointError(RealtimeTTSError, code="bad_checkpoint"):
    """A checkpoint folder is incomplete, inconsistent or of an unsupported kind."""


class VoiceError(RealtimeTTSError, code="bad_voice"):
    """A voice file, an embedding or a recording is not what a voice can be made of."""


class RequestError(RealtimeTTSError, code="bad_request"):
    """A turn asks for something the loaded checkpoint or server cannot do. `field`: the option at
    fault; "" if unknown."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class RouteError(RealtimeTTSError):
    """Base of the errors that a server's own HTTP routes answer with. `status`: the HTTP status;
    `retry_after`: whole seconds for the header Retry-After; 0 leaves it out."""

    status: ClassVar[int] = 400
    retry_after: ClassVar[int] = 0

    def __init_subclass__(
        cls, code: str, status: int = 400, retryable: bool = False, retry_after: int = 0
    ) -> None:
        super().__init_subclass__(code, retryable)
        cls.status, cls.retry_after = status, retry_after


class OverloadedError(RealtimeTTSError, code="overloaded", retryable=True):
    """The server refuses for now: there is no capacity, or a limit is used up. `retry_after`:
    seconds to wait before another try; `server_code`: the code that the server gave."""

    def __init__(self, message: str, retry_after: float, server_code: str = "overloaded") -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.server_code = server_code


class EngineError(RealtimeTTSError, code="engine_error", retryable=True):
    """The engine failed while it worked on a turn."""


class NumericsError(EngineError, code="numerics"):
    """One row produced NaN or Inf logits; only that row ends."""


class ClientError(RealtimeTTSError, code="client_error"):
    """Base of the Python client's errors."""


class ConnectionLost(ClientError, code="connection_lost", retryable=True):
    """The WebSocket closed before the turn was done."""


class HandshakeRefused(ClientError, code="handshake_refused"):
    """The server refused the connection; `status` is the HTTP status, 0 if there was none."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.retryable = not 400 <= status < 500 or status in (408, 425, 429)


class Unreachable(HandshakeRefused, code="unreachable"):
    """Nothing answers at the server's address."""


class CertificateRefused(HandshakeRefused, code="certificate_refused"):
    """The server's certificate is not trusted, has expired, or is for another name."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.retryable = False


class TurnError(ClientError, code="turn_error"):
    """The server ended a turn with an error; `server_code` is the code it gave. `server_retryable`
    equals `retryable`."""

    def __init__(self, message: str, server_code: str, server_retryable: bool = False) -> None:
        super().__init__(message)
        self.server_code = server_code
        self.retryable = self.server_retryable = server_retryable
