"""Real-time streaming text-to-speech: text deltas in, PCM packets out.

    async with RealtimeTTS("ws://127.0.0.1:8000") as tts:
        async for packet in tts.speak(deltas):
            play(packet)

`SyncRealtimeTTS` does the same without asyncio.

Importing this needs neither the server nor a model; the client, and what it needs to connect, is
imported when it is first asked for, so that an engine does without.
"""

from typing import TYPE_CHECKING, Any

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
    Unreachable,
)
from realtime_tts.version import __version__

if TYPE_CHECKING:
    from realtime_tts.client import (
        Backoff,
        Interrupted,
        RealtimeTTS,
        SessionOptions,
        Speech,
        SyncRealtimeTTS,
        Turn,
        TurnResult,
        speak_to_wav,
    )

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
    "SyncRealtimeTTS",
    "Turn",
    "TurnError",
    "TurnResult",
    "Unreachable",
    "__version__",
    "speak_to_wav",
]


def __getattr__(name: str) -> Any:
    """A name of the client."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from realtime_tts import client

    return getattr(client, name)
