"""Why the server refuses a session or a turn now, or ends one, though nothing is wrong with it."""

from __future__ import annotations

from realtime_tts.access.account import SESSION_RETRY_MS
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.server.auth import TOO_MANY_REQUESTS

GOING_AWAY = "going_away"
SLOW_READER = "slow_reader"
"""The code of a socket that is dropped because its client reads too slowly."""


def going_away(advice: str = "") -> TurnFailure:
    """Return why speech ends, or does not begin, when the server shuts down."""
    return TurnFailure(GOING_AWAY, f"the server is shutting down{advice}", True, 1_000)


def full(why: str, retry_after_ms: int | None = None) -> TurnFailure:
    """Return why no session is accepted; `retry_after_ms` if the wait is known."""
    wait = SESSION_RETRY_MS if retry_after_ms is None else retry_after_ms
    return TurnFailure("too_many_sessions", f"{why}; try again later", True, wait)


def too_many_without_key(most: int) -> TurnFailure:
    """Return why an address, of which `most` sockets have shown no key yet, may open no other."""
    why = f"{most} sockets of this address have not shown their keys; try again later"
    return TurnFailure(TOO_MANY_REQUESTS, why, True, SESSION_RETRY_MS)
