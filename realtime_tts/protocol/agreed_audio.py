"""What a session and its server agree on when a client asks for an audio format."""

from __future__ import annotations

from dataclasses import dataclass

from realtime_tts.errors import RequestError
from realtime_tts.protocol import messages as m
from realtime_tts.protocol.settings import AudioSettings


@dataclass(frozen=True, slots=True)
class AgreedAudio:
    """The format that was asked for, complete, and its largest packet, if it has one."""

    settings: AudioSettings = AudioSettings()
    packet_bytes: int | None = m.PACKET_BYTES


def only_pcm(asked: m.AudioStart) -> AgreedAudio:
    """What a server agrees to that has the engine's own format alone."""
    if asked == m.AudioStart() or asked == m.AudioStart(encoding=m.ENCODING):
        return AgreedAudio()
    raise RequestError(f"the audio is {m.ENCODING} at {m.SAMPLE_RATE} Hz; leave `audio` out")
