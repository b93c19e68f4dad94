"""Silence where the clients of other APIs need sound: what they take for a failure is its lack."""

from __future__ import annotations

from collections.abc import Iterator

from realtime_tts.audio.encoders import Encoder
from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.protocol.messages import SAMPLE_RATE

SILENCE = bytes(SAMPLE_RATE // 10 * BYTES_PER_SAMPLE)
"""A tenth of a second. Frameworks take an answer without sound for a failure."""

STALL_SECONDS = 2.5
"""After so long without sound some silence is sent: clients give up after three seconds."""

_MOST_SILENCES = 10
"""So often at most until an encoder gives something: the slowest, MP3 at 8 kHz, takes four."""


def silences(encoder: Encoder) -> Iterator[bytes]:
    """`SILENCE` after `SILENCE` encoded, until something comes of it: MP3 begins late."""
    for _ in range(_MOST_SILENCES):
        data = encoder.encode(SILENCE)
        yield data
        if data:
            return
