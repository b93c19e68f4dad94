"""The trace context that a request brings, in the header `traceparent` (W3C Trace Context)."""

from __future__ import annotations

import msgspec
from starlette.types import Scope

from realtime_tts.protocol.settings import Traceparent

HEADER = b"traceparent"
REFUSED = "realtime_tts.refused"
"""Key in the ASGI scope of a request that was refused: the code of the error."""
_CHARACTERS = 55
"""Length in version 00. Later versions may have more behind a dash, which is left out."""


def traceparent_of(scope: Scope) -> str | None:
    """Return the header of a request or a handshake; None without one, or for a malformed one,
    which W3C requires to be ignored."""
    found = [value for name, value in scope["headers"] if name == HEADER]
    return valid(found[0].decode("latin-1")) if len(found) == 1 else None


def valid(traceparent: str) -> str | None:
    """Return the part of it that this server understands, or None."""
    newer = not traceparent.startswith("00-") and traceparent[_CHARACTERS : _CHARACTERS + 1] == "-"
    try:
        return msgspec.convert(traceparent[:_CHARACTERS] if newer else traceparent, Traceparent)
    except msgspec.ValidationError:
        return None
