"""Which encoder makes the sound that a client asked for: the one place where dialects choose it."""

from __future__ import annotations

from realtime_tts.audio.encoders import Encoder, encoder_class
from realtime_tts.errors import RequestError
from realtime_tts.protocol.messages import SAMPLE_RATE

_OURS = {"pcm_s16le": "pcm"}


def open_encoder(encoding: str, sample_rate: int = SAMPLE_RATE) -> Encoder:
    """A new encoder; it takes s16le at 24 kHz, mono. Close it.

    `encoding`: `pcm_s16le`, `wav` (of that), `mp3`, `opus`, `aac` or `flac`. Raises RequestError
    that says what there is.
    """
    name = _OURS.get(encoding, encoding)
    encoder = encoder_class(name)
    if sample_rate != SAMPLE_RATE:
        raise RequestError(
            f"this server cannot make {encoding} at {sample_rate} Hz; ask for {SAMPLE_RATE} Hz"
        )
    return encoder(SAMPLE_RATE)
