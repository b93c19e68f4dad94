"""What a server says of a turn that is over, made up."""

from typing import Any

from realtime_tts.client import TurnResult

_USUAL = {"samples": 48_000, "ttfa_ms": 90.0, "underruns": 0, "held_ms": 0.0, "text_chars": 5}


def turn_result(**changes: Any) -> TurnResult:
    return TurnResult(turn_id="t", reason="complete", **{**_USUAL, **changes})
