"""Writes speech into a WAV file, for scripts that are not asynchronous."""

from __future__ import annotations

import asyncio
import wave
from os import PathLike, fspath
from typing import Unpack

from realtime_tts.audio.formats import ENGINE_FORMAT
from realtime_tts.client.client import RealtimeTTS
from realtime_tts.client.options import SessionOptions
from realtime_tts.errors import ConfigError
from realtime_tts.protocol.messages import DEFAULT_SERVER, SAMPLE_RATE, TurnDone


def wav_writer(path: str | PathLike[str], sample_rate: int = SAMPLE_RATE) -> wave.Wave_write:
    """Open a WAV file for packets (s16le) by `writeframes`; close it, or use it in `with`."""
    file = wave.open(fspath(path), "wb")
    file.setnchannels(1)
    file.setsampwidth(2)
    file.setframerate(sample_rate)
    return file


def speak_to_wav(
    text: str,
    path: str | PathLike[str],
    server: str = DEFAULT_SERVER,
    *,
    api_key: str | None = None,
    **options: Unpack[SessionOptions],
) -> TurnDone:
    """Speak `text` into a WAV file. Must not be called while an event loop runs in this thread.

    Of `audio` it takes `sample_rate` alone; ConfigError for the rest. Raises what RealtimeTTS
    raises; the file then holds the speech that was received.
    """
    audio = options.get("audio") or {}
    samples = audio.get("encoding", ENGINE_FORMAT.encoding) == ENGINE_FORMAT.encoding
    if audio.keys() - {"sample_rate", "encoding"} or not samples:
        raise ConfigError("speak_to_wav writes pcm_s16le; for other formats use RealtimeTTS")
    sample_rate = audio.get("sample_rate", SAMPLE_RATE)

    async def speak() -> TurnDone:
        async with RealtimeTTS(server, api_key=api_key, **options) as tts:
            speech = tts.speak(text)
            with wav_writer(path, sample_rate) as file:
                async for packet in speech:
                    file.writeframes(packet)
        assert speech.result is not None, "a loop that ended has a result"
        return speech.result

    return asyncio.run(speak())
