"""Why the server takes no session or turn now, or ends one, though nothing is wrong with it."""

from __future__ import annotations

from realtime_tts.protocol.effects import TurnFailure

GOING_AWAY = "going_away"
SLOW_READER = "slow_reader"
"""The client reads so slowly that its socket is given up."""
SESSION_RETRY_MS, TURN_RETRY_MS = 5_000, 1_000
"""Sessions last for minutes, turns for seconds."""


def going_away() -> TurnFailure:
    """Why speech ends, or does not begin, when the server goes."""
    return TurnFailure(GOING_AWAY, "the server is shutting down", True, 1_000)


def full(why: str, retry_after_ms: int | None = None) -> TurnFailure:
    """Why no session is taken; `retry_after_ms` where it is known."""
    wait = SESSION_RETRY_MS if retry_after_ms is None else retry_after_ms
    return TurnFailure("too_many_sessions", f"{why}; try again later", True, wait)
