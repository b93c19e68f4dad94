"""A server with several fronts in processes of its own, and its clients."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx2
import psutil
import websockets

from realtime_tts.server.occupancy import Occupancy
from tests.waiting import SECONDS, until

SERVER = """
import sys
from realtime_tts.config import AccessConfig, LimitsConfig, ServerConfig, TlsConfig
from realtime_tts.engine.multiprocess import Supervision
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.fronts.supervisor import supervise
from realtime_tts.logs import configure_logging
from realtime_tts.metrics import Metrics
from tts_scheduler import SchedulerConfig

configure_logging("json")
options = eval(sys.argv[1])
model = options.pop("model", "demo" if options.pop("real", False) else None)
engine = EngineConfig(model=model) if model else EngineConfig(
    kind="fake", step_seconds=0.002, devices=("cpu",) * options.pop("engines", 1),
    scheduler=SchedulerConfig(slots=64, utilisation=1_000), voices_dir=options.pop("voices", None),
)
fronts = options.pop("fronts", 2)
hang = options.pop("hang", 10.0)
limits = LimitsConfig(max_sessions=options.pop("max_sessions", None))
tls = options.pop("tls", None)
access = options.pop("access", None)
config = ServerConfig(
    port=0, limits=limits, tls=tls and TlsConfig(*tls), access=access and AccessConfig(*access),
    **options,
)
sys.exit(
    supervise(
        config, (engine,), fronts, Metrics(), lambda *stage: None,
        on_ready=lambda port, link: print(port, flush=True),
        supervision=Supervision(hang_seconds=hang, first_delay=0.05, tick_seconds=0.05),
    )
)
"""


class Server:
    """A running server: its processes, and its clients."""

    def __init__(self, process: asyncio.subprocess.Process, port: int, scheme: str) -> None:
        self.process = process
        self.port = port
        self.scheme = scheme
        self.main = psutil.Process(process.pid)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def socket_url(self) -> str:
        return f"ws{self.scheme.removeprefix('http')}://127.0.0.1:{self.port}/v1/tts"

    def close(self) -> None:
        """Let go of what belongs to this process."""
        if "occupancy" in vars(self):
            self.occupancy.close()

    def children(self, module: str) -> list[psutil.Process]:
        found = []
        for child in self.main.children():
            with contextlib.suppress(psutil.Error):
                if module in " ".join(child.cmdline()):
                    found.append(child)
        return found

    @property
    def fronts(self) -> list[psutil.Process]:
        return self.children("fronts.process")

    @property
    def engines(self) -> list[psutil.Process]:
        return self.children("engine.child")

    @cached_property
    def occupancy(self) -> Occupancy:
        """The table that its processes share: a file without a name that they have open."""
        fronts = len(self.fronts)
        for file in Path(f"/proc/{self.process.pid}/fd").iterdir():
            if file.readlink().name.endswith("(deleted)") and file.stat().st_size == fronts * 64:
                return Occupancy(os.open(file, os.O_RDWR), fronts)
        raise AssertionError("no open file of the server is its table")

    def sockets_of(self, front: psutil.Process) -> int:
        connections = front.net_connections("tcp")
        return sum(
            one.laddr.port == self.port and one.status == "ESTABLISHED" for one in connections
        )

    async def counted(self) -> None:
        """Wait until the table says how many sockets the fronts have: they write it ten times a
        second. A row that was written before now may lack a socket that has come and gone since."""
        fronts = self.fronts
        rows = [self.occupancy.row(number + 1) for number in range(len(fronts))]
        written = [row.beats for row in rows]
        await until(
            lambda: (
                all(row.beats >= before + 2 for row, before in zip(rows, written, strict=True))
                and sorted(row.sockets for row in rows)
                == sorted(self.sockets_of(front) for front in fronts)
            )
        )

    async def get(self, path: str, **options: Any) -> httpx2.Response:
        """On a connection of its own, so that any front may answer."""
        async with httpx2.AsyncClient(base_url=self.url, trust_env=False, verify=False) as http:
            return await http.request(options.pop("method", "GET"), path, **options)

    async def until(self, sample: str, value: float) -> None:
        """Wait until the metrics say so; a front that has just been killed may be the one asked."""
        async with asyncio.timeout(SECONDS):
            while True:
                with contextlib.suppress(httpx2.HTTPError):
                    if await self.value(sample) == value:
                        return
                await asyncio.sleep(0.05)

    async def value(self, sample: str) -> float:
        page = (await self.get("/metrics")).text
        lines = [line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#")]
        found = [float(value) for name, value in lines if name == sample]
        assert len(found) == 1, f"{sample} is there {len(found)} times"
        return found[0]


@contextlib.asynccontextmanager
async def serving(**options: Any) -> AsyncIterator[Server]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        SERVER,
        repr(options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=2**24,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            port = int(await process.stdout.readline())
        server = Server(process, port, "https" if "tls" in options else "http")
        yield server
        server.close()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


class Session:
    """One socket, and all that came over it."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket
        self.messages: list[dict[str, Any]] = []
        self.samples = 0
        self.task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        with contextlib.suppress(websockets.ConnectionClosed):
            async for raw in self.socket:
                if isinstance(raw, bytes):
                    self.samples += len(raw) // 2
                else:
                    self.messages.append(json.loads(raw))

    async def say(self, text: str) -> None:
        await self.socket.send(json.dumps({"type": "text", "text": text, "end": True}))

    @property
    def lost(self) -> bool:
        return self.task.done()

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [message for message in self.messages if message["type"] == kind]

    async def until(self, kind: str) -> dict[str, Any]:
        await until(lambda: self.of(kind) or self.lost)
        return self.of(kind)[-1]

    async def close(self) -> None:
        await self.socket.close()
        await self.task


@contextlib.asynccontextmanager
async def sessions(server: Server, count: int, **options: Any) -> AsyncIterator[list[Session]]:
    opened = []
    try:
        for _ in range(count):
            socket = await websockets.connect(server.socket_url, proxy=None, **options)
            opened.append(Session(socket))
            await opened[-1].until("ready")
        yield opened
    finally:
        await asyncio.gather(*(one.close() for one in opened))


@contextlib.asynccontextmanager
async def in_folder(folder: str) -> AsyncIterator[None]:
    """Servers that are started meanwhile have their private files in this folder."""
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = folder
    try:
        yield
    finally:
        os.environ.pop("TMPDIR")
        if before is not None:
            os.environ["TMPDIR"] = before
