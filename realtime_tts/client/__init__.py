"""The client, asyncio and blocking. It needs websockets and msgspec, and nothing of the server."""

from realtime_tts.client.blocking import SyncRealtimeTTS, SyncSpeech, SyncTurn
from realtime_tts.client.client import Backoff, RealtimeTTS
from realtime_tts.client.options import (
    AudioOptions,
    PredictorOptions,
    SamplingOptions,
    SessionOptions,
)
from realtime_tts.client.speech import Speech, TextSource
from realtime_tts.client.turn import Turn
from realtime_tts.client.wav import speak_to_wav, wav_writer
from realtime_tts.protocol.messages import DEFAULT_SERVER, Word
from realtime_tts.protocol.messages import TurnDone as TurnResult
from realtime_tts.protocol.messages import TurnInterrupted as Interrupted

__all__ = [
    "DEFAULT_SERVER",
    "AudioOptions",
    "Backoff",
    "Interrupted",
    "PredictorOptions",
    "RealtimeTTS",
    "SamplingOptions",
    "SessionOptions",
    "Speech",
    "SyncRealtimeTTS",
    "SyncSpeech",
    "SyncTurn",
    "TextSource",
    "Turn",
    "TurnResult",
    "Word",
    "speak_to_wav",
    "wav_writer",
]
