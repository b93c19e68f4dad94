"""ASGI apps behind uvicorn, as they are or behind the guarded sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import uvicorn

from realtime_tts.config import SocketConfig
from realtime_tts.metrics import Metrics
from realtime_tts.server.addresses import ClientAddresses
from realtime_tts.server.guarded import guarded
from realtime_tts.server.http import GuardedHttp
from realtime_tts.server.time_slices import TimeSlices
from realtime_tts.server.websocket import GuardedWebSocket
from tests.server.peers import RawPeer
from tests.waiting import until


@dataclass
class Aimed:
    """A running ASGI app."""

    port: int
    metrics: Metrics
    server: uvicorn.Server
    peers: list[RawPeer] = field(default_factory=list)

    def aborts(self, reason: str) -> float:
        value = self.metrics.registry.get_sample_value(
            "tts_socket_aborts_total", {"reason": reason}
        )
        return value or 0.0

    async def peer(self, **options: Any) -> RawPeer:
        """One that is connected; it is closed before the app ends."""
        self.peers.append(await RawPeer.connect(self.port, **options))
        return self.peers[-1]


class _Server(uvicorn.Server):
    """Leaves signals alone. uvicorn brings back the handler that it found, which in a fixture is
    that of its setup, and was over long ago."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def serving(app: Any, **options: Any) -> AsyncIterator[tuple[int, uvicorn.Server]]:
    """An ASGI app behind uvicorn; gives its port. `options`: of `uvicorn.Config`."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1, **options)
    server = _Server(config)
    task = asyncio.create_task(server.serve([listener]))
    try:
        await until(lambda: server.started)
        yield listener.getsockname()[1], server
    finally:
        server.should_exit = True
        await task


@contextlib.asynccontextmanager
async def aimed(app: Any, settings: SocketConfig, **uvicorn_options: Any) -> AsyncIterator[Aimed]:
    """An ASGI app behind the guarded protocol classes."""
    metrics = Metrics()
    shared = settings, metrics, ClientAddresses(), TimeSlices()
    async with serving(
        app,
        http=guarded(GuardedHttp, *shared),
        ws=guarded(GuardedWebSocket, *shared),
        ws_per_message_deflate=False,
        ws_ping_interval=settings.ping_interval,
        ws_ping_timeout=settings.ping_timeout,
        lifespan="off",
        **uvicorn_options,
    ) as (port, server):
        running = Aimed(port, metrics, server)
        try:
            yield running
        finally:
            for one in running.peers:
                one.sock.close()
