"""The words of a turn, as its client is told of them."""

from __future__ import annotations

from collections.abc import Iterable

from realtime_tts.protocol.messages import TurnWords, Word
from realtime_tts.text.speech_times import SpokenSpan


def turn_words(turn_id: str, spans: Iterable[SpokenSpan]) -> TurnWords | None:
    """`turn.words` for these words, to a tenth of a millisecond; None if there are none."""
    words = tuple(
        Word(text=text, start_ms=round(start * 1000, 1), end_ms=round(end * 1000, 1))
        for text, start, end in spans
    )
    return TurnWords(turn_id=turn_id, words=words) if words else None
