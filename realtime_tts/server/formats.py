"""Audio formats between the protocol, which names them, and the audio layer, which makes them."""

from __future__ import annotations

from realtime_tts.audio.encoders import require
from realtime_tts.audio.formats import AudioFormat, audio_format
from realtime_tts.protocol.agreed_audio import AgreedAudio
from realtime_tts.protocol.messages import ENCODING, AudioStart
from realtime_tts.protocol.settings import AudioSettings


def agreed_audio(asked: AudioStart) -> AgreedAudio:
    """The format that a client asks for. RequestError says what there is instead."""
    agreed = audio_format(
        asked.encoding or ENCODING,
        asked.sample_rate,
        asked.container,
        asked.bit_rate,
        asked.packet_ms,
    )
    require(agreed)
    settings = AudioSettings(
        encoding=agreed.encoding,
        sample_rate=agreed.sample_rate,
        container=agreed.container,
        bit_rate=agreed.bit_rate,
        packet_ms=agreed.packet_ms,
    )
    return AgreedAudio(settings, agreed.packet_bytes)


def format_of(audio: AudioSettings) -> AudioFormat:
    """The format that a session has agreed to."""
    return AudioFormat(
        audio.encoding, audio.sample_rate, audio.container, audio.bit_rate, audio.packet_ms
    )
