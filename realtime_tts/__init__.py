"""Real-time streaming text-to-speech: text deltas in, PCM packets out.

    async with RealtimeTTS("ws://127.0.0.1:8000") as tts:
        async for packet in tts.speak(deltas):
            play(packet)

Importing this needs neither the server nor a model.
"""

from realtime_tts.client import (
    Backoff,
    Interrupted,
    RealtimeTTS,
    SessionOptions,
    Speech,
    Turn,
    TurnResult,
    speak_to_wav,
)
from realtime_tts.errors import (
    CertificateRefused,
    CheckpointError,
    ClientError,
    ConfigError,
    ConnectionLost,
    EngineError,
    HandshakeRefused,
    NumericsError,
    OverloadedError,
    RealtimeTTSError,
    RequestError,
    TurnError,
)
from realtime_tts.version import __version__

__all__ = [
    "Backoff",
    "CertificateRefused",
    "CheckpointError",
    "ClientError",
    "ConfigError",
    "ConnectionLost",
    "EngineError",
    "HandshakeRefused",
    "Interrupted",
    "NumericsError",
    "OverloadedError",
    "RealtimeTTS",
    "RealtimeTTSError",
    "RequestError",
    "SessionOptions",
    "Speech",
    "Turn",
    "TurnError",
    "TurnResult",
    "__version__",
    "speak_to_wav",
]
