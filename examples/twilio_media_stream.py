"""A telephone agent: Twilio's media streams on one side, streaming speech on the other.

    python examples/twilio_media_stream.py --server ws://127.0.0.1:8000 --port 8003

Connect a call to it with this TwiML. Twilio requires wss, so put a proxy in front of it:

    <Response><Connect><Stream url="wss://your.host/"/></Connect></Response>

The speech server makes mu-law at 8 kHz in packets of 20 ms, which is what Twilio plays, so nothing
is converted here. A mark after each tenth of a second comes back when the caller has heard it. When
the caller begins to talk, Twilio's buffer is cleared and the turn interrupted with that position:
the server answers which words were heard, and those belong into the model's history. Replace
`reply`, which says prepared sentences, by a speech recogniser and a language model.
"""

import argparse
import asyncio
import base64
import json
import math
import time
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from realtime_tts import RealtimeTTS, Speech
from realtime_tts.errors import RealtimeTTSError

GREETING = "Hello, this is the boat house. What can I do for you?"
BYTES_PER_MS = 8
MARK_MS = 100
LOUD = 1_000.0  # root mean square of 16-bit samples; a quiet line is below 200
SPEECH_PACKETS = 3  # loud packets of 20 ms in a row that count as speech; fewer are a click
PAUSE_PACKETS = 30  # so many quiet ones end it


async def reply(number: int, heard: str) -> AsyncIterator[str]:
    """Yield the agent's answer as a language model would write it. `heard`: of its last answer."""
    text = f"That was question number {number}. You last heard: {heard.strip() or 'nothing'}."
    for word in text.split(" "):
        yield word + " "
        await asyncio.sleep(0.02)


def _decoded(code: int) -> int:
    """Decode a byte of mu-law into a 16-bit sample (ITU-T G.711)."""
    code = ~code & 0xFF
    size = (((code & 0x0F) << 3) + 0x84 << (code >> 4 & 0x07)) - 0x84
    return -size if code & 0x80 else size


SQUARES = [_decoded(code) ** 2 for code in range(256)]


class Ear:
    """Detects by energy whether the caller talks. Replace it by a voice activity detector, which
    can tell speech from other sounds."""

    def __init__(self) -> None:
        self.talking = False
        self._in_a_row = 0

    def hear(self, packet: bytes) -> bool:
        """Take 20 ms of mu-law; return whether they changed `talking`."""
        rms = math.sqrt(sum(SQUARES[code] for code in packet) / max(1, len(packet)))
        changes = (rms > LOUD) != self.talking
        self._in_a_row = self._in_a_row + 1 if changes else 0
        if self._in_a_row < (PAUSE_PACKETS if self.talking else SPEECH_PACKETS):
            return False
        self.talking, self._in_a_row = not self.talking, 0
        return True


@dataclass
class Utterance:
    """One turn of the agent, and how much of it was sent to and heard by the caller."""

    number: int
    speech: Speech
    sent_ms: float = 0.0
    marked_ms: float = 0.0
    marked_at: float = field(default_factory=time.monotonic)
    complete: bool = False  # all of it was sent
    cut: bool = False

    def sounds(self) -> bool:
        return not self.cut and not (self.complete and self.marked_ms >= self.sent_ms)

    def played_ms(self) -> float:
        """Milliseconds heard: the last mark, plus the time since, up to the next mark."""
        since = min((time.monotonic() - self.marked_at) * 1_000, MARK_MS)
        return min(self.marked_ms + (since if self.sent_ms else 0.0), self.sent_ms)


class Call:
    """One telephone call: its socket from Twilio, and its session with the speech server."""

    def __init__(self, socket: ServerConnection, tts: RealtimeTTS, greeting: str) -> None:
        self._socket, self._tts, self._greeting = socket, tts, greeting
        self._ear = Ear()
        self._stream = ""
        self._utterance: Utterance | None = None
        self._spoken = 0
        self._heard = ""

    async def run(self) -> None:
        """Serve the call until Twilio stops it."""
        async with asyncio.TaskGroup() as tasks:
            begun: list[asyncio.Task[None]] = []
            async for raw in self._socket:
                message = json.loads(raw)
                if message["event"] == "stop":
                    break
                work = self._on(message)
                if work is not None:
                    begun = [task for task in begun if not task.done()]
                    begun.append(tasks.create_task(_contained(work)))
            for task in begun:
                task.cancel()

    def _on(self, message: dict[str, Any]) -> Coroutine[Any, Any, None] | None:
        """Handle a message of Twilio's. Return work to do in the background, if there is any."""
        match message["event"]:
            case "start":
                self._stream = message["start"]["streamSid"]
                return self._say(_whole(self._greeting))
            case "media" if self._ear.hear(base64.b64decode(message["media"]["payload"])):
                if not self._ear.talking:
                    self._spoken += 1
                    return self._say(reply(self._spoken, self._heard))
                if self._utterance is not None and self._utterance.sounds():
                    return self._barge_in(self._utterance)
            case "mark":
                return self._marked(message["mark"]["name"])
        return None

    async def _say(self, deltas: AsyncIterator[str]) -> None:
        speech = self._tts.speak(deltas)
        number = 1 if self._utterance is None else self._utterance.number + 1
        said = self._utterance = Utterance(number, speech)
        next_mark = float(MARK_MS)
        try:
            async for packet in speech:
                if said.cut:
                    continue  # from before the interrupt, which has emptied Twilio's buffer
                payload = base64.b64encode(packet).decode()
                await self._tell("media", media={"payload": payload})
                said.sent_ms += len(packet) / BYTES_PER_MS
                if said.sent_ms >= next_mark:
                    next_mark += MARK_MS
                    await self._mark(said)
        finally:
            said.complete = True
        if not said.cut:
            await self._mark(said)

    async def _mark(self, said: Utterance) -> None:
        await self._tell("mark", mark={"name": f"{said.number}:{said.sent_ms:g}"})

    def _marked(self, name: str) -> Coroutine[Any, Any, None] | None:
        """Handle a mark up to which Twilio has played. `clear` returns all others as well: marks of
        an utterance that was cut are ignored."""
        number, _, ms = name.partition(":")
        said = self._utterance
        turn = said.speech.turn if said is not None else None
        if said is None or turn is None or said.cut or int(number) != said.number:
            return None
        said.marked_ms, said.marked_at = float(ms), time.monotonic()
        if not said.sounds():
            self._heard = turn.text
        return turn.played(said.marked_ms)

    async def _barge_in(self, said: Utterance) -> None:
        """Stop speaking because the caller talks, then ask the server what they had heard."""
        played_ms = said.played_ms()
        said.cut = True
        await self._tell("clear")
        report = await said.speech.interrupt(played_ms)
        self._heard = report.text_spoken
        print(f"interrupted after {played_ms:.0f} ms", flush=True)
        print(f"heard:     {report.text_spoken!r}", flush=True)
        print(f"not heard: {report.text_remaining!r}", flush=True)

    async def _tell(self, event: str, **fields: Any) -> None:
        await self._socket.send(json.dumps({"event": event, "streamSid": self._stream, **fields}))


async def _contained(work: Coroutine[Any, Any, None]) -> None:
    """Run `work`, but keep the call when the speech server fails; the next turn reconnects."""
    try:
        await work
    except RealtimeTTSError as error:
        print(f"the speech failed: {error}", flush=True)


async def _whole(text: str) -> AsyncIterator[str]:
    yield text


async def main(arguments: argparse.Namespace) -> None:
    async def answer(socket: ServerConnection) -> None:
        audio = {"encoding": "pcm_mulaw", "sample_rate": 8_000, "packet_ms": 20}
        try:
            async with RealtimeTTS(arguments.server, audio=audio) as tts:
                await Call(socket, tts, arguments.greeting).run()
        except* ConnectionClosed:
            print("the caller is gone", flush=True)
        except* RealtimeTTSError as errors:
            print(f"no speech for this call: {errors.exceptions[0]}", flush=True)
            await socket.close(1013)

    async with serve(answer, arguments.host, arguments.port) as server:
        host, port = next(iter(server.sockets)).getsockname()[:2]
        print(f"waiting for Twilio on ws://{host}:{port}", flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A telephone agent on Twilio's media streams.")
    parser.add_argument("--server", default="ws://127.0.0.1:8000", help="the speech server")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8003)
    parser.add_argument("--greeting", default=GREETING)
    asyncio.run(main(parser.parse_args()))
