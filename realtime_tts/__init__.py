"""Real-time streaming text-to-speech: text deltas in, PCM packets out.

    async with RealtimeTTS("ws://127.0.0.1:8000") as tts:
        async for packet in tts.speak(deltas):
            play(packet)

`SyncRealtimeTTS` does the same without asyncio.

Importing this needs neither the server nor a model; the client, and what it needs to connect, is
imported when one of its names is first used, so that an engine does without.
"""

from importlib import import_module
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
        DEFAULT_SERVER,
        AudioOptions,
        Backoff,
        Interrupted,
        PredictorOptions,
        RealtimeTTS,
        SamplingOptions,
        SessionOptions,
        Speech,
        SyncRealtimeTTS,
        SyncSpeech,
        SyncTurn,
        TextSource,
        Turn,
        TurnResult,
        Word,
        speak_to_wav,
        wav_writer,
    )
    from realtime_tts.client.lexicons import LexiconClient
    from realtime_tts.client.voices import VoiceClient

__all__ = [
    "DEFAULT_SERVER",
    "AudioOptions",
    "Backoff",
    "CertificateRefused",
    "CheckpointError",
    "ClientError",
    "ConfigError",
    "ConnectionLost",
    "EngineError",
    "HandshakeRefused",
    "Interrupted",
    "LexiconClient",
    "NumericsError",
    "OverloadedError",
    "PredictorOptions",
    "RealtimeTTS",
    "RealtimeTTSError",
    "RequestError",
    "SamplingOptions",
    "SessionOptions",
    "Speech",
    "SyncRealtimeTTS",
    "SyncSpeech",
    "SyncTurn",
    "TextSource",
    "Turn",
    "TurnError",
    "TurnResult",
    "Unreachable",
    "VoiceClient",
    "Word",
    "__version__",
    "speak_to_wav",
    "wav_writer",
]

_MODULES = {
    "LexiconClient": "realtime_tts.client.lexicons",
    "VoiceClient": "realtime_tts.client.voices",
}


def __getattr__(name: str) -> Any:
    """Import a name of the client when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES.get(name, "realtime_tts.client")), name)
