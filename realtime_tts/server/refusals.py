"""Why the server refuses a session or a turn now, or ends one, though nothing is wrong with it."""

from __future__ import annotations

from realtime_tts.protocol.effects import TurnFailure

GOING_AWAY = "going_away"
SLOW_READER = "slow_reader"
"""The code of a socket that is dropped because its client reads too slowly."""
SESSION_RETRY_MS, TURN_RETRY_MS = 5_000, 1_000
"""Times to wait before trying again: sessions last for minutes, turns for seconds."""


def going_away(advice: str = "") -> TurnFailure:
    """Return why speech ends, or does not begin, when the server shuts down."""
    return TurnFailure(GOING_AWAY, f"the server is shutting down{advice}", True, 1_000)


def full(why: str, retry_after_ms: int | None = None) -> TurnFailure:
    """Return why no session is accepted; `retry_after_ms` if the wait is known."""
    wait = SESSION_RETRY_MS if retry_after_ms is None else retry_after_ms
    return TurnFailure("too_many_sessions", f"{why}; try again later", True, wait)
