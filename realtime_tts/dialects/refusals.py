"""What the answers that refuse have in common, whatever an API's errors look like."""

from __future__ import annotations

from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.server.front import Front
from realtime_tts.server.socket import BAD_REQUEST

OVERLOADS = frozenset({"overloaded", "too_many_sessions"})
"""Others are in the way."""
_REASON_BYTES = 123  # of a close frame


def not_ready(front: Front) -> TurnFailure | None:
    """Why a list cannot be given now: what is loaded is not known."""
    reason = front.not_ready()
    return None if reason is None else TurnFailure("not_ready", reason, True, 2_000)


def retry_after(failure: TurnFailure) -> dict[str, str]:
    """The header that says in how many seconds to try again, if that may help."""
    if not failure.retryable or failure.retry_after_ms is None:
        return {}
    return {"retry-after": str(max(1, -(-failure.retry_after_ms // 1000)))}


def close_reason(text: str) -> str:
    """As much of it as a close frame can carry."""
    return text.encode(errors="replace")[:_REASON_BYTES].decode(errors="ignore")


def status_of(failure: TurnFailure) -> int:
    """429 where others are in the way, 503 where another try may help, 400 where none does."""
    if failure.code == BAD_REQUEST:
        return 400
    return 429 if failure.code in OVERLOADS else 503
