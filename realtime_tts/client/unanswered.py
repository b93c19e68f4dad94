"""Errors for a connection that failed, the same for WebSockets and plain HTTP."""

from __future__ import annotations

import os
import ssl

from realtime_tts.client.trust import refused_certificate
from realtime_tts.errors import HandshakeRefused, Unreachable


def shown(url: str) -> str:
    """Return the URL as its owner knows it: without the query that the client has added."""
    return url.partition("?")[0]


def unanswered(url: str, error: OSError) -> HandshakeRefused:
    """Return the error for a connection that failed with `error`."""
    if (refused := refused_certificate(shown(url), error)) is not None:
        return refused
    if isinstance(error, ssl.SSLError):
        plain = "http" if url.startswith("http") else "ws"
        return HandshakeRefused(
            f"{shown(url)} does not speak TLS: {error.reason}; is it a {plain}:// server?"
        )
    # asyncio's own words name the address once more, as Python writes a tuple.
    number = error.errno or 0
    why = os.strerror(number) if number > 0 else (error.strerror or str(error))
    return Unreachable(f"no server answers at {shown(url)}: {why}")


def no_answer(url: str, timeout_s: float) -> Unreachable:
    """Return the error for a connection that was not answered in time."""
    return Unreachable(f"no answer from {shown(url)} within {timeout_s:g} s")


def misunderstood(url: str, what: str, error: Exception) -> HandshakeRefused:
    """Return the error for an answer in another protocol than `what`."""
    secure = {"ws": "wss", "http": "https"}.get(url.partition(":")[0])
    hint = f"; does it want {secure}://?" if secure else ""
    return HandshakeRefused(f"{shown(url)} did not answer as {what}: {str(error).strip()}{hint}")
