"""Makes the listening samples in docs/samples with the demo voice and the server's encoders.

python -m tools.samples [docs/samples]
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from realtime_tts.audio.encoders import Encoder
from realtime_tts.audio.formats import parse_format
from realtime_tts.bench.local_server import local_server
from realtime_tts.client import RealtimeTTS

FOLDER = Path("docs/samples")
SAMPLE_RATE = 24_000
FORMAT = parse_format("opus_24000_32")
SEED = 7  # so that the same checkpoint makes the same files

GREETING = "Good evening. I am {name}, one of the voices that come with the server."
LAYOUTS = (
    "There are two trains to the coast today: one goes straight through, on the other you change."
)
BEFORE, AFTER = (
    "I looked it up for you: the last train",
    " leaves at ten past nine, from platform four.",
)
LONG = (
    "There are two trains to the coast this evening. The first leaves at ten past six, and the "
    "second at seven, but there you would have to change once, and wait for half an hour."
)
ANSWER = "All right, in short: take the first one."
HEARD_MS = 4_300
FADE, BREATH = 96, 9_600  # samples of the fade-out, and of the pause before the answer

Samples = NDArray[np.int16]


async def spoken(tts: RealtimeTTS, text: str) -> Samples:
    """Speak a text that is known as a whole."""
    return _joined([packet async for packet in tts.speak(text)])


async def voices(tts: RealtimeTTS) -> dict[str, Samples]:
    """Speak one sentence with each voice."""
    found = {}
    for name in tts.ready.voices:
        await tts.configure(voice=name)
        found[f"voice-{name}"] = await spoken(tts, GREETING.format(name=name.capitalize()))
    await tts.configure(voice=None)
    return found


async def layouts(tts: RealtimeTTS) -> dict[str, Samples]:
    """Speak one text in each layout."""
    found = {}
    for layout in ("streaming", "full_text"):
        await tts.configure(layout=layout)
        found[f"layout-{layout.replace('_', '-')}"] = await spoken(tts, LAYOUTS)
    await tts.configure(layout=None)
    return found


async def seam(tts: RealtimeTTS) -> dict[str, Samples]:
    """Speak a text that stops after a few words, and continues when these have been spoken. The
    wait is left out of the sample, which shows how the voice continues."""
    turn = await tts.turn()
    packets: list[bytes] = []

    async def listen() -> None:
        async for packet in turn:
            packets.append(packet)

    listening = asyncio.create_task(listen())
    await turn.send(BEFORE)
    count = -1
    while not packets or len(packets) > count:  # until no more sound arrives
        count = len(packets)
        await asyncio.sleep(4)
    await turn.send(AFTER, end=True)
    await listening
    return {"seam": _joined(packets)}


async def interrupt(tts: RealtimeTTS) -> dict[str, Samples]:
    """Interrupt in the middle of a sentence, and speak an answer."""
    turn = await tts.turn()
    await turn.send(LONG, end=True)
    packets: list[bytes] = []
    async for packet in turn:
        packets.append(packet)
        if turn.samples_received >= HEARD_MS * SAMPLE_RATE // 1000:
            break
    report = await turn.interrupt(HEARD_MS)
    print(f"heard before the interrupt: {report.text_spoken!r}")
    heard = _joined(packets)[: HEARD_MS * SAMPLE_RATE // 1000]
    heard[-FADE:] = (heard[-FADE:] * np.linspace(1, 0, FADE)).astype(np.int16)
    pause = np.zeros(BREATH, np.int16)
    return {"interrupt": np.concatenate([heard, pause, await spoken(tts, ANSWER)])}


def encoded(samples: Samples) -> bytes:
    """Encode samples into a file."""
    encoder = Encoder(FORMAT)
    return encoder.encode(samples.astype("<i2").tobytes()) + encoder.finish()


def _joined(packets: list[bytes]) -> Samples:
    return np.frombuffer(b"".join(packets), "<i2").astype(np.int16)


MAKERS: tuple[Callable[[RealtimeTTS], Awaitable[dict[str, Samples]]], ...] = (
    voices,
    layouts,
    seam,
    interrupt,
)


async def main(folder: Path) -> None:
    async with (
        local_server(["--slots", "2"]) as url,
        RealtimeTTS(url, seed=SEED, lead_ms=30_000) as tts,
    ):
        for make in MAKERS:
            for name, samples in (await make(tts)).items():
                data = encoded(samples)
                (folder / f"{name}.opus").write_bytes(data)
                print(f"{name}.opus: {len(samples) / SAMPLE_RATE:.1f} s, {len(data)} bytes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    asyncio.run(main(parser.parse_args().folder))
