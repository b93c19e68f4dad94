"""Speech into a WAV file, for scripts that are not asynchronous."""

from __future__ import annotations

import asyncio
import wave
from os import PathLike, fspath
from typing import Unpack

from realtime_tts.client.client import DEFAULT_SERVER, RealtimeTTS
from realtime_tts.client.options import SessionOptions
from realtime_tts.client.report import TurnResult
from realtime_tts.protocol.messages import SAMPLE_RATE


def wav_writer(path: str | PathLike[str]) -> wave.Wave_write:
    """A WAV file that takes packets through `writeframes`; close it, or use it with `with`."""
    file = wave.open(fspath(path), "wb")
    file.setnchannels(1)
    file.setsampwidth(2)
    file.setframerate(SAMPLE_RATE)
    return file


def speak_to_wav(
    text: str,
    path: str | PathLike[str],
    server: str = DEFAULT_SERVER,
    *,
    api_key: str | None = None,
    **options: Unpack[SessionOptions],
) -> TurnResult:
    """Speak `text` into a WAV file. Not to be called while an event loop runs in this thread.

    Raises what RealtimeTTS raises; the file then holds what had come.
    """

    async def speak() -> TurnResult:
        async with RealtimeTTS(server, api_key=api_key, **options) as tts:
            speech = tts.speak(text)
            with wav_writer(path) as file:
                async for packet in speech:
                    file.writeframes(packet)
        assert speech.result is not None, "a loop that ended has a result"
        return speech.result

    return asyncio.run(speak())
