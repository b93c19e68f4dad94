"""Which encoder makes the sound that a client asked for: the one place where dialects choose it."""

from __future__ import annotations

from realtime_tts.audio.encoders import Encoder
from realtime_tts.audio.formats import audio_format, parse_format


def open_encoder(
    name: str,
    sample_rate: int | None = None,
    *,
    container: str | None = None,
    bit_rate: int | None = None,
) -> Encoder:
    """A new encoder; it takes s16le at 24 kHz, mono. Close it.

    `name`: what `parse_format` reads, such as `pcm_s16le`, `wav` or `mp3_44100_128`; the others say
    more than it does, in hertz and bits a second. Raises RequestError that says what there is.
    """
    named = parse_format(name)
    if sample_rate is None and container is None and bit_rate is None:
        return Encoder(named)
    if container is None:
        container = named.container
    return Encoder(audio_format(named.encoding, sample_rate, container, bit_rate))
