"""Stage: a server to attack, and a victim that speaks meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import websockets
from prometheus_client.parser import text_string_to_metric_families

from tests.server.peers import RawPeer

_CONTROL = "127.0.0.9"  # who looks how the server is


@dataclass(frozen=True)
class Attack:
    """`run` gives what was seen, and raises AssertionError for what was not expected. `ends`: how
    turns of the victim may end meanwhile, besides complete. `logs`: what the log may have of it."""

    name: str
    expected: str
    run: Callable[[Stage], Awaitable[str]]
    ends: frozenset[str] = frozenset()
    logs: str | None = None


@dataclass
class Stage:
    """One running server."""

    folder: Path
    port: int
    process: psutil.Process
    turns: list[dict[str, Any]] = field(default_factory=list)
    """Of the victim."""
    source: str = "127.0.1.1"
    """Where the attack comes from: another address for each, since one that was refused stays so
    for a while."""

    @property
    def url(self) -> str:
        """Of the native protocol."""
        return f"ws://127.0.0.1:{self.port}/v1/tts"

    @property
    def engine(self) -> psutil.Process:
        """The engine's process: the one of its children that has used most."""
        children = [one for one in self.process.children() if "engine" in "".join(one.cmdline())]
        return max(children or self.process.children(), key=lambda one: sum(one.cpu_times()[:2]))

    async def peer(self, **options: Any) -> RawPeer:
        """A bare TCP connection."""
        return await RawPeer.connect(self.port, **{"source": self.source, **options})

    @contextlib.asynccontextmanager
    async def peers(self, count: int, path: str | None = "/v1/tts") -> AsyncIterator[list[RawPeer]]:
        """So many connections, upgraded unless `path` is None; closed in the end."""
        made = [await self.peer() for _ in range(count)]
        if path is not None:
            heads = [await peer.upgrade(path) for peer in made]
            assert all(b" 101 " in head for head in heads), heads
        try:
            yield made
        finally:
            for peer in made:
                peer.sock.close()

    @contextlib.asynccontextmanager
    async def session(self, query: str = "") -> AsyncIterator[websockets.ClientConnection]:
        """A proper one, past its `ready`."""
        source = (self.source, 0)
        url = self.url + query
        async with websockets.connect(url, compression=None, local_addr=source) as socket:
            await socket.recv()
            yield socket

    async def request(
        self, method: str, path: str, body: bytes = b"", *lines: str, **options: Any
    ) -> tuple[int, bytes]:
        """Status and body of the answer."""
        peer = await self.peer(**options)
        head = (f"{method} {path} HTTP/1.1", "Host: a", "Connection: close", *lines)
        length = f"Content-Length: {len(body)}"
        await peer.send("\r\n".join((*head, length, "\r\n")).encode() + body)
        answer = await peer.head()
        rest = bytearray(peer._buffer)
        while data := await peer._receive():
            rest += data
        peer.sock.close()
        return int(answer.split()[1]), bytes(rest)

    async def metrics(self) -> dict[str, float]:
        """Sample values by name and labels."""
        status, body = await self.request("GET", "/metrics", source=_CONTROL)
        assert status == 200, status
        return {
            sample.name + "".join(f",{value}" for value in sample.labels.values()): sample.value
            for family in text_string_to_metric_families(body.decode())
            for sample in family.samples
        }

    async def settled(self, sessions: int = 1, seconds: float = 5.0) -> None:
        """Wait until only the victim's session is left."""
        until = time.monotonic() + seconds
        while (found := (await self.metrics())["tts_sessions"]) > sessions:
            assert time.monotonic() < until, f"{found:g} sessions are left"
            await asyncio.sleep(0.1)

    async def next_turns(self, since: float, seconds: float = 20.0) -> list[dict[str, Any]]:
        """The victim's turns that ended since then, once one that began since then has."""
        until, known = time.monotonic() + seconds, len(self.turns)
        while not any(turn["began"] >= since for turn in self.turns):
            assert time.monotonic() < until, "the victim hears nothing any more"
            await asyncio.sleep(0.05)
        first = next(at for at, turn in enumerate(self.turns) if turn["ended"] >= since)
        return self.turns[min(first, known) :]

    def faults(self) -> list[str]:
        """What the log says of faults of ours, or of exceptions that nobody caught."""
        lines = (self.folder / "log").read_text().splitlines()
        found = [json.loads(line) for line in lines if line.startswith("{")]
        ours = [f"{one['event']}: {one['exception'][-300:]}" for one in found if "exception" in one]
        return ours + [line for line in lines if not line.startswith("{")]


def lag_over(before: dict[str, float], after: dict[str, float], seconds: float) -> int:
    """How often the event loop woke a timer later than this meanwhile."""
    name = "tts_event_loop_lag_seconds"

    def count(found: dict[str, float]) -> float:
        return found[f"{name}_count"] - found[f"{name}_bucket,{seconds:g}"]

    return round(count(after) - count(before))


@contextlib.asynccontextmanager
async def staged(folder: Path) -> AsyncIterator[Stage]:
    """A server, and a victim that is heard."""
    with (folder / "log").open("wb") as log:
        server = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.attacks.server",
            str(folder),
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
    assert server.stdout is not None
    port = int(await server.stdout.readline())
    victim = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.attacks.victim", str(port), stdout=asyncio.subprocess.PIPE
    )
    stage = Stage(folder, port, psutil.Process(server.pid))
    listening = asyncio.create_task(_listen(stage, victim))
    try:
        await stage.next_turns(time.monotonic())
        yield stage
    finally:
        victim.kill()
        await listening
        server.send_signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5):
                await server.wait()
        if server.returncode is None:
            server.kill()
        await asyncio.gather(server.wait(), victim.wait())


async def _listen(stage: Stage, victim: asyncio.subprocess.Process) -> None:
    assert victim.stdout is not None
    while line := await victim.stdout.readline():
        stage.turns.append(json.loads(line) | {"ended": time.monotonic()})
