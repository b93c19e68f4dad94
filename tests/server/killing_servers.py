"""Two servers behind a proxy, which are killed at random moments while clients listen.

    python -m tests.server.killing_servers --engine inline --moments 1000

Every reply is compared with what an undisturbed server says. Prints a JSON object; the status is 1
if a reply was lost, a word is missing or comes twice, or a sample differs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

from realtime_tts import Backoff, RealtimeTTS, RealtimeTTSError
from realtime_tts.client.turn import Turn
from tests.serving import Serving, serving_beside

TEXTS = (
    "The train to the coast leaves at ten past nine from platform four. There is room in front.",
    "I looked it up for you, and the museum is open until six. On Monday it is closed.",
    "Good morning, and thank you for waiting so long. How may I help you today?",
)
_BACKOFF = Backoff(first=0.02, longest=0.5, give_up_after=60.0)


@dataclass
class Found:
    """`gaps`: seconds from the end of a server to the next packet of each reply that it spoke."""

    moments: int = 0
    replies: int = 0
    resumes: int = 0
    lost: int = 0
    different: int = 0
    wrong_words: int = 0
    warnings: int = 0
    median_gap: float = 0.0
    longest_gap: float = 0.0
    seconds: float = 0.0
    gaps: list[float] = field(default_factory=list, repr=False)


class Server:
    """A server in a process of its own."""

    def __init__(self, engine: str) -> None:
        self._flags = f"--engine {engine} --slots 4 --utilisation 1000 --threads 1".split()
        self._running = contextlib.AsyncExitStack()
        self._server: Serving | None = None
        self.port = 0

    async def start(self) -> None:
        """Returns when it is ready."""
        environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        self._server = await self._running.enter_async_context(
            serving_beside(*self._flags, environment=environment)
        )
        self.port = self._server.port

    async def kill(self) -> None:
        """At once, as the kernel does it."""
        if self._server is not None:
            await asyncio.to_thread(self._server.killed)
            await self._running.aclose()
        self.port = 0


class Proxy:
    """Hands each connection to a server that takes it."""

    def __init__(self, servers: list[Server]) -> None:
        self._servers = servers
        self._listening: asyncio.Server | None = None
        self._next = 0
        self._writers: dict[asyncio.StreamWriter, int] = {}

    async def start(self) -> str:
        self._listening = await asyncio.start_server(self._take, "127.0.0.1", 0)
        return f"127.0.0.1:{self._listening.sockets[0].getsockname()[1]}"

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._next += 1
        for number in range(len(self._servers)):
            port = self._servers[(self._next + number) % len(self._servers)].port
            with contextlib.suppress(OSError):
                if port:
                    there = await asyncio.open_connection("127.0.0.1", port)
                    self._writers[writer] = port
                    await asyncio.gather(_pump(reader, there[1]), _pump(there[0], writer))
                    self._writers.pop(writer, None)
                    return
        writer.close()

    def cut(self, port: int) -> None:
        """All connections to this server, as if it had ended."""
        for writer in [writer for writer, to in self._writers.items() if to == port]:
            del self._writers[writer]
            writer.transport.abort()

    def stop(self) -> None:
        if self._listening is not None:
            self._listening.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@dataclass(frozen=True)
class Script:
    """A reply: its text, its seed, and whether it comes in pieces, as a language model writes."""

    text: str
    seed: int
    slow: bool

    async def deltas(self, seconds: float) -> AsyncIterator[str]:
        for at in range(0, len(self.text), 6):
            yield self.text[at : at + 6]
            await asyncio.sleep(seconds)


class Talk:
    """So many clients, each of which has one reply after another spoken."""

    def __init__(self, address: str, random: Random) -> None:
        self.found = Found()
        self.killed_at = 0.0
        self.ending = False
        self._address, self._random = address, random
        self._wanted: dict[Script, bytes] = {}

    async def undisturbed(self) -> None:
        for text in TEXTS:
            script = Script(text, self._random.randrange(2**40), slow=False)
            async with self._session(script, lead_ms=30_000) as tts:
                packets = [packet async for packet in tts.speak(script.text)]
            self._wanted[script] = b"".join(packets)

    def _session(self, script: Script, **options: Any) -> RealtimeTTS:
        return RealtimeTTS(
            self._address,
            backoff=_BACKOFF,
            seed=script.seed,
            word_times="on",
            text_normalization="off",
            **options,
        )

    async def listen(self) -> None:
        while not self.ending:
            script = self._random.choice(list(self._wanted))
            if self._random.random() < 0.4:
                script = Script(script.text, script.seed, slow=True)
            try:
                tts = self._session(script)
                await tts.connect(retry_for=60.0)
                async with tts:
                    await self._reply(tts, script)
            except RealtimeTTSError as error:
                self.found.lost += 1
                sys.stderr.write(f"lost: {error!r}\n")

    async def _reply(self, tts: RealtimeTTS, script: Script) -> None:
        found = self.found
        found.replies += 1
        speech = tts.speak(script.deltas(0.05) if script.slow else script.text)
        audio, resumes = bytearray(), 0
        async for packet in speech:
            audio += packet
            if speech.turn is not None and speech.turn.resumes > resumes:
                resumes = speech.turn.resumes
                found.gaps.append(time.monotonic() - self.killed_at)
        found.resumes += resumes
        assert speech.turn is not None and speech.result is not None
        found.warnings += len(speech.turn.warnings)
        self._compare(script, bytes(audio), speech.turn)

    def _compare(self, script: Script, audio: bytes, turn: Turn) -> None:
        found = self.found
        said = "".join(word.text for word in turn.words)
        assert turn.result is not None
        if said != script.text or turn.result.samples * 2 != len(audio):
            found.wrong_words += 1
            sys.stderr.write(f"wrong words: {said!r}, {turn.result}, {len(audio) // 2}\n")
        if not script.slow and audio != self._wanted[script]:
            found.different += 1
            sys.stderr.write(f"different: {len(audio)} of {len(self._wanted[script])} bytes\n")


async def disturbed(
    engine: str, moments: int, live: int, seed: int, limit: float = 1e9, *, cut: bool = False
) -> Found:
    """Kill one of two servers so many times, or for so long, while `live` clients listen. `cut`:
    only its connections end, which needs no other server to start."""
    random = Random(seed)
    servers = [Server(engine), Server(engine)]
    proxy = Proxy(servers)
    address = await proxy.start()
    talk = Talk(address, random)
    begun = time.monotonic()
    try:
        await asyncio.gather(*(server.start() for server in servers))
        await talk.undisturbed()
        begun = time.monotonic()
        clients = [asyncio.create_task(talk.listen()) for _ in range(live)]
        while talk.found.moments < moments and time.monotonic() - begun < limit:
            await asyncio.sleep(random.uniform(0.3, 3.0))
            victim = servers[talk.found.moments % 2]
            talk.killed_at = time.monotonic()
            talk.found.moments += 1
            if cut:
                proxy.cut(victim.port)
            else:
                await victim.kill()
                await victim.start()
        talk.ending = True
        await asyncio.gather(*clients)
    finally:
        proxy.stop()
        await asyncio.gather(*(server.kill() for server in servers))
    found = talk.found
    found.seconds = round(time.monotonic() - begun, 1)
    if found.gaps:
        found.median_gap = round(statistics.median(found.gaps), 3)
        found.longest_gap = round(max(found.gaps), 3)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["inline", "fake"], default="inline")
    parser.add_argument("--moments", type=int, default=1_000)
    parser.add_argument("--live", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cut", action="store_true", help="end connections, not servers")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no moment later")
    given = parser.parse_args()
    found = asyncio.run(
        disturbed(given.engine, given.moments, given.live, given.seed, given.seconds, cut=given.cut)
    )
    told = asdict(found)
    del told["gaps"]
    sys.stdout.write(json.dumps(told) + "\n")
    return int(bool(found.lost or found.different or found.wrong_words or found.warnings))


if __name__ == "__main__":
    sys.exit(main())
