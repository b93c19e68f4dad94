"""Speak a text into a WAV file.

python examples/say.py "Hello there." hello.wav [ws://127.0.0.1:8000]
"""

import argparse
import asyncio
import sys

from realtime_tts import RealtimeTTS, RealtimeTTSError, wav_writer


async def main(text: str, path: str, server: str) -> None:
    async with RealtimeTTS(server) as tts:
        with wav_writer(path) as wav:
            async for packet in tts.speak(text):
                wav.writeframes(packet)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Speak a text into a WAV file.")
    parser.add_argument("text")
    parser.add_argument("path")
    parser.add_argument("server", nargs="?", default="ws://127.0.0.1:8000")
    try:
        asyncio.run(main(**vars(parser.parse_args())))
    except RealtimeTTSError as error:  # such as no server
        sys.exit(str(error))
