"""The telephone example, a program of its own, against a Twilio that plays what it is told to."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import math
import re
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import websockets

from realtime_tts.audio.g711 import mulaw
from tests.examples.serving import speech_server

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "twilio_media_stream.py"
QUIET = mulaw(bytes(320))
LOUD = mulaw((8_000 * np.sin(np.arange(160) / 5)).astype("<i2").tobytes())
LONG = "One two three four five six seven eight nine ten."  # more than the server sends ahead


class Program:
    """The example under way, and what it has printed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def line(self) -> str:
        assert self.process.stdout is not None
        async with asyncio.timeout(30):
            return (await self.process.stdout.readline()).decode().strip()


@contextlib.asynccontextmanager
async def agent(server: str, greeting: str) -> AsyncIterator[tuple[Program, str]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROGRAM),
        "--server",
        server,
        "--port",
        "0",
        "--greeting",
        greeting,
        stdout=asyncio.subprocess.PIPE,
    )
    program = Program(process)
    try:
        found = re.fullmatch(r"waiting for Twilio on (ws://\S+)", await program.line())
        assert found is not None
        yield program, found[1]
    finally:
        process.terminate()
        await process.wait()


class Twilio:
    """Twilio's end of a media stream. It plays only when the test says so, by `play`."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket
        self.buffer: list[dict[str, Any]] = []  # media and marks that were not played
        self.played = b""
        self.events: list[str] = []
        self._sent = 0
        self._changed = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            async for raw in self.socket:
                await self._take(json.loads(raw))
                self._changed.set()
        finally:
            self._changed.set()

    async def _take(self, message: dict[str, Any]) -> None:
        assert message["streamSid"] == "MZ1"
        self.events.append(message["event"])
        if message["event"] != "clear":
            self.buffer.append(message)
            return
        dropped, self.buffer = self.buffer, []
        for mark in dropped:
            if mark["event"] == "mark":  # Twilio returns those, too
                await self.say("mark", mark=mark["mark"])

    async def say(self, event: str, **fields: Any) -> None:
        self._sent += 1
        told = {"event": event, "sequenceNumber": str(self._sent), "streamSid": "MZ1", **fields}
        await self.socket.send(json.dumps(told))

    async def begin(self) -> None:
        await self.socket.send(
            json.dumps({"event": "connected", "protocol": "Call", "version": "1.0.0"})
        )
        shape = {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1}
        await self.say("start", start={"streamSid": "MZ1", "callSid": "CA1", "mediaFormat": shape})

    async def talk(self, packet: bytes, count: int) -> None:
        for _ in range(count):
            payload = base64.b64encode(packet).decode()
            await self.say("media", media={"track": "inbound", "payload": payload})

    async def until(self, holds: Callable[[], Any]) -> None:
        async with asyncio.timeout(30):
            while not holds():
                assert not self._reader.done(), "the program hung up"
                self._changed.clear()
                await self._changed.wait()

    async def until_heard(self, count: int) -> None:
        """Until so many packets of media are in the buffer."""
        await self.until(lambda: len(self.media()) >= count)

    async def play(self, ms: float = math.inf) -> None:
        """Play so much of the buffer, and return the marks that this passes."""
        while self.buffer and ms > 0 or self.buffer and self.buffer[0]["event"] == "mark":
            item = self.buffer.pop(0)
            if item["event"] == "mark":
                await self.say("mark", mark=item["mark"])
            else:
                sound = base64.b64decode(item["media"]["payload"])
                self.played += sound
                ms -= len(sound) / 8

    def media(self) -> list[bytes]:
        items = [item for item in self.buffer if item["event"] == "media"]
        return [base64.b64decode(item["media"]["payload"]) for item in items]


@contextlib.asynccontextmanager
async def calling(url: str) -> AsyncIterator[Twilio]:
    async with websockets.connect(url) as socket:
        twilio = Twilio(socket)
        await twilio.begin()
        yield twilio
    await twilio._reader


async def test_a_caller_is_greeted_in_packets_of_20_ms_and_marks() -> None:
    async with (
        speech_server() as tts,
        agent(tts, "Good morning.") as (_, url),
        calling(url) as twilio,
    ):
        last = lambda: twilio.buffer and twilio.buffer[-1]["event"] == "mark"  # noqa: E731
        await twilio.until(lambda: len(twilio.media()) >= 52 and last())  # 13 bytes, 80 ms each
        sizes = [len(packet) for packet in twilio.media()]
        assert set(sizes) == {160} and len(sizes) == 52
        marks = [item["mark"]["name"] for item in twilio.buffer if item["event"] == "mark"]
        assert marks[:2] == ["1:100", "1:200"] and marks[-1] == "1:1040"
        assert len(set(b"".join(twilio.media()))) > 20, "there is sound in it"
        await twilio.say("stop", stop={"callSid": "CA1"})


async def test_a_caller_who_talks_is_not_talked_over_and_gets_an_answer() -> None:
    async with speech_server() as tts, agent(tts, LONG) as (program, url), calling(url) as twilio:
        await twilio.until(lambda: len(twilio.media()) >= 100)
        await twilio.play(300)
        await twilio.talk(QUIET, 5)
        await twilio.talk(LOUD, 3)
        await twilio.until(lambda: "clear" in twilio.events)
        interrupted = re.fullmatch(r"interrupted after (\d+) ms", await program.line())
        assert interrupted is not None and 300 <= int(interrupted[1]) <= 400
        heard = (await program.line()).removeprefix("heard:     ")
        rest = (await program.line()).removeprefix("not heard: ")
        assert heard.strip("'") + rest.strip("'") == LONG and len(rest) > len(heard)
        assert twilio.events[-1] == "clear", "nothing of the old turn follows"
        await twilio.talk(QUIET, 30)  # and now it is the agent's turn
        await twilio.until(lambda: len(twilio.media()) >= 20)
        assert {item["mark"]["name"][:2] for item in twilio.buffer if "mark" in item} == {"2:"}
        await twilio.say("stop", stop={"callSid": "CA1"})


async def test_a_click_interrupts_nobody_and_one_caller_does_not_disturb_the_next() -> None:
    async with speech_server() as tts, agent(tts, "Good morning.") as (_, url):
        async with calling(url) as first, calling(url) as second:
            for twilio in (first, second):
                await twilio.until_heard(20)
            for _ in range(4):
                await first.talk(LOUD, 2)
                await first.talk(QUIET, 1)
            await second.talk(LOUD, 3)
            await second.until(lambda: "clear" in second.events)
            await first.until(lambda: len(first.media()) >= 52)
            assert "clear" not in first.events
        async with calling(url) as third:  # two hung up without a `stop`
            await third.until(lambda: len(third.media()) >= 20)


async def test_what_was_heard_to_its_end_cannot_be_interrupted() -> None:
    async with speech_server() as tts, agent(tts, "Hm.") as (_, url), calling(url) as twilio:
        await twilio.until(lambda: [e for e in twilio.events if e == "mark"][2:])
        await twilio.until(lambda: twilio.buffer[-1].get("mark", {}).get("name") == "1:240")
        await twilio.play()
        await twilio.talk(LOUD, 5)
        await twilio.talk(QUIET, 30)
        await twilio.until(lambda: len(twilio.media()) >= 5)
        assert "clear" not in twilio.events
        await twilio.say("stop", stop={"callSid": "CA1"})


async def test_a_call_without_a_speech_server_is_hung_up_with_the_reason() -> None:
    async with agent("127.0.0.1:9", "Hm.") as (program, url):
        async with websockets.connect(url) as socket:
            await socket.wait_closed()
            assert socket.close_code == 1013
        assert (await program.line()).startswith("no speech for this call: ")
