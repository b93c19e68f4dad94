"""A language model's deltas in, speech out, while the model is still writing.

    python examples/llm_to_speech.py [--server ws://127.0.0.1:8000] [--interrupt-after 1.5]

The model is simulated: a fixed reply in uneven pieces. In your program `reply()` is the stream of a
language model; anything that yields strings will do. With --interrupt-after somebody starts to talk
while the reply is heard, and the program learns which part of it they had heard.
"""

import argparse
import asyncio
import random
import time
from collections.abc import AsyncIterator

from realtime_tts import Interrupted, RealtimeTTS, Speech
from realtime_tts.client import wav_writer

REPLY = (
    "Of course. There are two trains this evening: one at ten past six that goes straight through, "
    "and one at seven where you change once. The first is a little dearer, but you would be home "
    "before nine. Shall I book it?"
)


async def reply() -> AsyncIterator[str]:
    """The deltas of a language model: a few characters at a time, 40 to 100 times a second."""
    position = 0
    while position < len(REPLY):
        size = random.randint(1, 8)
        yield REPLY[position : position + size]
        position += size
        await asyncio.sleep(random.uniform(0.01, 0.025))


async def main(server: str, path: str, interrupt_after: float | None) -> None:
    async with RealtimeTTS(server) as tts:
        began = time.monotonic()
        speech = tts.speak(reply())
        seconds, interrupting = 0.0, None
        with wav_writer(path) as wav:
            async for packet in speech:
                if seconds == 0.0:
                    print(f"first packet after {(time.monotonic() - began) * 1000:.0f} ms")
                    if interrupt_after is not None:
                        interrupting = asyncio.create_task(barge_in(speech, interrupt_after))
                seconds += len(packet) / 48_000
                wav.writeframes(packet)
        print(f"{seconds:.2f} s of speech in {path}")
        if interrupting is not None:
            report = await interrupting
            print(f"heard:     {report.text_spoken!r}")
            print(f"not heard: {report.text_remaining!r}")


async def barge_in(speech: Speech, after: float) -> Interrupted:
    """Interrupt when the listener has heard `after` seconds."""
    await asyncio.sleep(after)
    return await speech.interrupt(played_ms=after * 1000)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A language model's deltas in, speech out.")
    parser.add_argument("--server", default="ws://127.0.0.1:8000")
    parser.add_argument("--output", default="reply.wav")
    parser.add_argument("--interrupt-after", type=float, metavar="SECONDS")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.server, arguments.output, arguments.interrupt_after))
