"""A fleet on this machine: real servers that speak in tones, in this process or in their own, and a
real HAProxy in front of them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import websockets

from realtime_tts import Backoff, RealtimeTTS
from realtime_tts.config import AddressConfig, ServerConfig
from realtime_tts.engine.fake import FakeEngine, FakeEngineConfig
from realtime_tts.engine.in_process import InProcessEngine
from realtime_tts.errors import ConfigError
from realtime_tts.fleet.haproxy import IngressConfig
from realtime_tts.fleet.ingress import Ingress, find_haproxy
from realtime_tts.fleet.members import Member
from realtime_tts.server.run import RunningServer, running
from tests.fronts.running import Session
from tests.server.speaking import byte_tokenizer
from tests.serving import serving_beside
from tests.waiting import until
from tts_scheduler import SchedulerConfig

LONG = "one " * 40  # thirteen seconds of tones
TEN_SECONDS = "one " * 30
PROXIED = AddressConfig(trusted_proxies=("127.0.0.1",))


def missing() -> str | None:
    """Why there can be no fleet here."""
    try:
        find_haproxy()
    except ConfigError as error:
        return str(error)
    return None


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def cloned(voice: str) -> bool:
    """What counts as a registered voice at the servers here."""
    return voice.startswith("clone-")


@dataclass
class Listener:
    """Has a text spoken by the Python client, which goes on elsewhere when its socket is lost."""

    port: int
    audio: bytearray = field(default_factory=bytearray)
    resumes: int = 0

    async def hear(self, text: str) -> None:
        backoff = Backoff(first=0.02, longest=0.5, give_up_after=60)
        async with RealtimeTTS(f"127.0.0.1:{self.port}", backoff=backoff, seed=7) as tts:
            speech = tts.speak(text)
            async for packet in speech:
                self.audio += packet
            assert speech.turn is not None and speech.result is not None
            assert speech.result.reason == "complete" and not speech.turn.warnings
            self.resumes = speech.turn.resumes


@contextlib.asynccontextmanager
async def listening(port: int, count: int, text: str) -> AsyncIterator[list[Listener]]:
    """So many listeners, who hear something when the block begins, and all of it at its end; what
    they hear is what somebody heard whom nobody disturbed."""
    undisturbed = Listener(port)
    await undisturbed.hear(text)
    assert undisturbed.resumes == 0
    listeners = [Listener(port) for _ in range(count)]
    async with asyncio.timeout(90), asyncio.TaskGroup() as group:
        for one in listeners:
            group.create_task(one.hear(text))
        await until(lambda: all(one.audio for one in listeners), 20)
        yield listeners
    assert [bytes(one.audio) == bytes(undisturbed.audio) for one in listeners] == [True] * count


@contextlib.asynccontextmanager
async def server(slots: int, **config: Any) -> AsyncIterator[RunningServer]:
    """One in this process."""
    engine = FakeEngine(
        FakeEngineConfig(slots=slots, frames_per_token=1, step_seconds=0.005), cloned
    )
    scheduler = SchedulerConfig(slots=slots, max_queue=1, queue_timeout=0.2, utilisation=1_000)
    link = InProcessEngine(lambda progress: engine, scheduler)
    usual: dict[str, Any] = {"addresses": PROXIED, "turn_reserve": 0.0}
    settings = ServerConfig(port=0, agent_port=0, **usual | config)
    async with running(settings, link, byte_tokenizer) as one:
        yield one


@dataclass
class ServerProcess:
    """One in a process of its own."""

    process: subprocess.Popen[str]
    member: Member

    async def ended(self) -> int:
        return await asyncio.to_thread(self.process.wait)


@contextlib.asynccontextmanager
async def server_process(slots: int) -> AsyncIterator[ServerProcess]:
    """`realtime-tts serve`, when it is ready."""
    here = Member("127.0.0.1", free_port(), free_port())
    flags = f"--engine fake --slots {slots} --turn-reserve 0 --trusted-proxy 127.0.0.1"
    ports = f"--port {here.port} --agent-port {here.agent_port}"
    async with serving_beside(*flags.split(), *ports.split()) as server:
        yield ServerProcess(server.process, here)


def member(one: RunningServer) -> Member:
    assert one.agent_port is not None
    return Member("127.0.0.1", one.port, one.agent_port)


@dataclass
class Fleet:
    """Servers in this process behind an ingress."""

    servers: list[RunningServer]
    ingress: Ingress
    port: int
    opened: list[Session] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def open(self, query: str = "", **options: Any) -> Session:
        """A session, past its `ready`; closed with the fleet."""
        session = await open_session(self.port, query, **options)
        self.opened.append(session)
        return session

    def sessions(self) -> list[int]:
        """Of each server."""
        return [one.front.sessions for one in self.servers]

    async def ready(self, count: int) -> None:
        """Wait until HAProxy has heard from the agents of so many servers."""
        await until_ready(self.ingress, count)


async def open_session(port: int, query: str = "", **options: Any) -> Session:
    url = f"ws://127.0.0.1:{port}/v1/tts{query}"
    session = Session(await websockets.connect(url, proxy=None, compression=None, **options))
    await session.until("ready")
    assert session.of("ready"), session.messages
    return session


async def leaves_a_client_that_stops_reading(server: RunningServer, port: int) -> None:
    """Ten seconds after a client behind a proxy at `port` stopped reading, its session is gone at
    the server, and what it was to hear is made no longer."""
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setblocking(False)
    url = f"ws://127.0.0.1:{port}/v1/tts"
    session = Session(await websockets.connect(url, sock=sock, compression=None, max_queue=None))
    await session.until("ready")
    await session.say("one " * 400)
    await until(lambda: session.samples > 24_000)
    session.socket.transport.pause_reading()
    stopped = time.monotonic()
    await until(lambda: server.front.sessions == 0, seconds=12)
    assert time.monotonic() - stopped < 10
    await until(lambda: server.front.load().active == 0)
    session.socket.transport.abort()
    await session.task


async def until_ready(ingress: Ingress, count: int) -> None:
    found, deadline = None, time.monotonic() + 10
    while time.monotonic() < deadline:
        found = await weights(ingress)
        if len(found) == count:
            return
        await asyncio.sleep(0.05)
    states = (await ingress.api.ask("show servers state servers")).splitlines()
    raise TimeoutError(f"{found}, not {count} servers: {states[: count + 4]}")


async def weights(ingress: Ingress) -> dict[str, int]:
    """What HAProxy makes of the agents: the weight of each server that takes sessions."""
    found = {}
    for line in (await ingress.api.ask("show stat")).splitlines():
        cells = line.split(",")
        heard = len(cells) > 18 and cells[0] == "servers" and cells[17].startswith("UP")
        if heard and cells[1] != "BACKEND" and cells[18] != "100":
            found[cells[1]] = int(cells[18])
    return found


@contextlib.asynccontextmanager
async def ingress_running(
    config: IngressConfig, members: Iterable[Member] = ()
) -> AsyncIterator[Ingress]:
    """An ingress; at the end of the block, calls are cut."""
    ingress = Ingress(config, members)
    try:
        await ingress.start()
        yield ingress
    finally:
        await ingress.stop()


@contextlib.asynccontextmanager
async def fleet(
    *sizes: int, configs: Sequence[dict[str, Any]] = (), **ingress: Any
) -> AsyncIterator[Fleet]:
    """Servers for so many turns each. `configs`: of the servers; `ingress`: its settings."""
    async with contextlib.AsyncExitStack() as stack:
        settings = list(configs) or [{}] * len(sizes)
        servers = [
            await stack.enter_async_context(server(size, **config))
            for size, config in zip(sizes, settings, strict=True)
        ]
        port = free_port()
        chosen = IngressConfig(bind=f"127.0.0.1:{port}", slots=8, **ingress)
        front = await stack.enter_async_context(
            ingress_running(chosen, [member(one) for one in servers])
        )
        found = Fleet(servers, front, port)
        await found.ready(len(servers))
        try:
            yield found
        finally:
            await asyncio.gather(*(one.close() for one in found.opened), return_exceptions=True)
