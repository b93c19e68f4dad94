"""What a server says of an interrupt, written in short."""

from realtime_tts.client import Interrupted


def interrupted(turn_id: str, samples: int, ms: float, spoken: str, remaining: str) -> Interrupted:
    return Interrupted(
        turn_id=turn_id,
        samples_sent=samples,
        played_ms=ms,
        text_spoken=spoken,
        text_remaining=remaining,
    )
