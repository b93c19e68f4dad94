"""Speak a text into a WAV file.

python examples/say.py "Hello there." hello.wav [ws://127.0.0.1:8000]
"""

import asyncio
import sys

from realtime_tts import RealtimeTTS, wav_writer


async def main(text: str, path: str, server: str = "ws://127.0.0.1:8000") -> None:
    async with RealtimeTTS(server) as tts:
        with wav_writer(path) as wav:
            async for packet in tts.speak(text):
                wav.writeframes(packet)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
