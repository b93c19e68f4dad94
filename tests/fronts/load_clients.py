"""Client processes of `throughput.py`: many bare sockets, of whose bytes as little as possible is
read."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import struct
import sys
import time

from tests.fronts import gpu_costs

TEXT = "I have moved the meeting to Thursday and told everyone. Anna sends her notes in time."
ROUND_SECONDS = 0.4
WARM_UP_ROUNDS = 3


def frame(**message: object) -> bytes:
    """A masked text frame of more than 125 bytes, or of fewer."""
    data = json.dumps(message).encode()
    if len(data) < 126:
        return bytes((0x81, 0x80 | len(data))) + bytes(4) + data
    return b"\x81\xfe" + struct.pack("!H", len(data)) + bytes(4) + data


def whole(text: str) -> bytes:
    """The frame of a turn's whole text."""
    return frame(type="text", text=text, end=True)


class Stream(asyncio.Protocol):
    """A bare socket: a handshake, then bytes, of which as little as possible is read.

    What the server refuses would be waited for in vain: its words end this process."""

    def __init__(self) -> None:
        self.upgraded = asyncio.Event()
        self.sound = asyncio.Event()
        self.done = asyncio.Event()
        self.first = 0.0
        self.ages: list[float] | None = None
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        key = base64.b64encode(os.urandom(16))
        transport.write(
            b"GET /v1/tts HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade"
            b"\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n"
        )

    def data_received(self, data: bytes) -> None:
        if not self.upgraded.is_set():
            if not data.startswith(b"HTTP/1.1 101"):
                sys.exit(data.decode(errors="replace"))
            self.upgraded.set()
        if (at := data.find(b'{"type":"error"')) >= 0:
            sys.exit(data[at : data.find(b"}", at) + 1].decode())
        now = time.monotonic()
        if not self.sound.is_set() and gpu_costs.age(data, now) is not None:
            self.first = now
            self.sound.set()
        if b'"turn.done"' in data or b'"turn.interrupted"' in data:
            self.done.set()
        if self.ages is not None and (age := gpu_costs.age(data, now)) is not None:
            self.ages.append(age)

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True

    def begin(self, text: bytes) -> float:
        """Begin a turn with the frame of its text; return when it was handed to the kernel."""
        self.sound.clear()
        self.done.clear()
        self.transport.write(text)
        return time.monotonic()


async def connected(port: int, count: int, pause: float = 0.0) -> list[Stream]:
    loop, streams = asyncio.get_running_loop(), []
    for _ in range(count):
        _, stream = await loop.create_connection(Stream, "127.0.0.1", port)
        await stream.upgraded.wait()
        streams.append(stream)
        await asyncio.sleep(pause)
    return streams


async def be_starter(port: int, count: int, rounds: int) -> None:
    """Begin a turn on each of its sockets in each round; a line says when the first round is."""
    streams, text = await connected(port, count), whole(TEXT)
    say({})
    loop, found = asyncio.get_running_loop(), list[float]()
    first = float(await loop.run_in_executor(None, sys.stdin.readline))
    for number in range(rounds + WARM_UP_ROUNDS):
        await asyncio.sleep(first + number * ROUND_SECONDS - time.monotonic())
        begun = [stream.begin(text) for stream in streams]
        await asyncio.gather(*(stream.sound.wait() for stream in streams))
        if number >= WARM_UP_ROUNDS:
            found += [one.first - at for one, at in zip(streams, begun, strict=True)]
        await asyncio.sleep(first + (number + 0.5) * ROUND_SECONDS - time.monotonic())
        for stream in streams:
            stream.transport.write(frame(type="interrupt"))
        await asyncio.gather(*(stream.done.wait() for stream in streams))
    say(found)


async def be_client(port: int, count: int, rate: float, seconds: float) -> None:
    """Streams in real time; every line asks for what is known, and begins to count anew."""
    streams = await connected(port, count, 0.8 / rate)
    text = whole("hello " * round((seconds + 40 + count / rate) * 12.5 / 3))
    for number, stream in enumerate(streams):
        stream.begin(text)
        if number % 10 == 9:
            await asyncio.sleep(8 / rate)
    say({})
    loop, ages = asyncio.get_running_loop(), list[float]()
    while await loop.run_in_executor(None, sys.stdin.readline):
        lost = sum(stream.lost for stream in streams)
        ages.sort()
        part = [ages[round(share * (len(ages) - 1) / 1_000)] for share in range(1_001) if ages]
        say({"lost": lost, "ages": part, "seen": len(ages)})
        ages.clear()
        for stream in streams:
            stream.ages = ages


def say(what: object) -> None:
    """One line of JSON."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    kind, port, count, *rest = sys.argv[1:]
    if kind == "start":
        asyncio.run(be_starter(int(port), int(count), int(rest[0])))
    else:
        asyncio.run(be_client(int(port), int(count), *map(float, rest)))
