"""DrainingServer: uvicorn's server, with an end that lets speech finish.

Stock uvicorn answers SIGTERM by closing every WebSocket within a tenth of a second. Here the first
signal only drains: `/readyz` says 503, nobody is admitted, running turns may finish until the
deadline, sessions get their close frame, and the process exits with 0. The second ends all now.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Generator
from types import FrameType
from typing import Any, cast

import uvicorn

from realtime_tts.config import ServerConfig
from realtime_tts.logs import event
from realtime_tts.server.front import Front
from realtime_tts.server.http import GuardedHttp
from realtime_tts.server.listening import BACKLOG
from realtime_tts.server.tls import Certificate
from realtime_tts.signals import ignore_signals

log = logging.getLogger(__name__)

ACCEPTED_AT_ONCE = 4
"""Connections accepted in one pass of the event loop. asyncio accepts as many as its `backlog`
says, and the next pass would do all the work for them, before any other client had a turn."""
_CLOSE_SECONDS = 1.0


class DrainingServer(uvicorn.Server):
    """A `uvicorn.Server` for one `Front`.

    `exit_code` is 1 if the engine never loaded, else 0. `certificate`: every socket speaks TLS.
    `handle_signals` False leaves the process's signal handlers alone; call `request_drain`.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        front: Front,
        *,
        certificate: Certificate | None = None,
        handle_signals: bool = True,
    ) -> None:
        super().__init__(config)
        self._tls = None if certificate is None else certificate.context
        self.exit_code = 0
        self.on_started: Callable[[], None] | None = None
        """Called once connections can be served."""
        self.on_stopping: Callable[[], Awaitable[None]] | None = None
        """Called, and waited for, when no more should come."""
        self._front = front
        self._handle_signals = handle_signals
        self._drain_deadline: float | None = None
        self._ended_at: float | None = None
        self._beginning: dict[asyncio.Protocol, asyncio.Task[None]] = {}
        front.reloads.add(self)
        if certificate is not None:
            front.reloads.add(certificate)
            front.metrics.watch_certificate(lambda: certificate.expires)

    def prepare(self, config: ServerConfig) -> Callable[[], None]:
        """Prepare the limits, for sockets that are opened later. See `Reloadable`."""
        front = self._front

        def take_over() -> None:
            front.config = config
            front.addresses.take_over(config.addresses)
            self.config.ws_max_size = config.limits.max_frame_bytes

        return take_over

    def request_drain(self) -> None:
        """Drain at the first call, end at the second. Safe in a signal handler."""
        if self._drain_deadline is None:
            self._drain_deadline = time.monotonic() + self._front.config.drain_seconds
        else:
            self._drain_deadline = time.monotonic()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.request_drain()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        if not self._handle_signals:
            yield
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle_exit)
        try:
            yield
        finally:
            ignore_signals()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._tls is None:
            await super().startup(sockets)
        else:
            await self._startup_tls(sockets or [])
        for listener in sockets or []:
            listener.listen(BACKLOG)  # asyncio made it smaller
        if self.on_started is not None:
            self.on_started()

    async def _startup_tls(self, sockets: list[socket.socket]) -> None:
        # uvicorn cannot limit the TLS handshake and shutdown, for which asyncio allows a minute and
        # half a minute: too much for a client that connects and sends nothing.
        await super().startup([])
        self.started = False
        loop, backlog = asyncio.get_running_loop(), self.config.backlog
        for listener in sockets:
            server = await loop.create_server(
                self._protocol, sock=listener, backlog=backlog, **self._tls_options
            )
            self.servers.append(server)
        self.started = True

    @property
    def _tls_options(self) -> dict[str, Any]:
        """What asyncio needs for sockets that speak TLS; nothing where they do not."""
        if self._tls is None:
            return {}
        timeouts = self._front.config.socket
        return {
            "ssl": self._tls,
            "ssl_handshake_timeout": timeouts.handshake_timeout,
            "ssl_shutdown_timeout": timeouts.close_timeout,
        }

    @property
    def sockets(self) -> int:
        """Open connections, with those that `take` has been given and that have not begun yet."""
        return len(self.server_state.connections | self._beginning.keys())

    def take(self, accepted: socket.socket) -> None:
        """Serve a connection that another process has accepted."""
        protocol = self._protocol()
        self._beginning[protocol] = asyncio.create_task(self._begin(protocol, accepted))

    async def _begin(self, protocol: asyncio.Protocol, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(lambda: protocol, accepted, **self._tls_options)
        except OSError as error:  # it is gone, or its handshake failed
            event(log, logging.DEBUG, "socket.not_begun", why=str(error))
        finally:
            del self._beginning[protocol]

    def _protocol(self) -> asyncio.Protocol:
        """Return what uvicorn makes for an accepted connection."""
        make = cast("Callable[..., asyncio.Protocol]", self.config.http_protocol_class)
        return make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    async def on_tick(self, counter: int) -> bool:
        """Called by uvicorn ten times a second; returns whether to exit."""
        if self._front.engine.load_failure is not None:
            self.exit_code = 1
            self.should_exit = True
        if self._drain_deadline is not None:
            self._drain(self._drain_deadline)
        return await super().on_tick(counter)

    def _drain(self, deadline: float) -> None:
        front, now = self._front, time.monotonic()
        if not front.draining:
            self._end_idle_connections()
        front.drain()
        if front.sessions == 0:
            self.should_exit = True
        elif now >= deadline and self._ended_at is None:
            self._ended_at = now
            event(log, logging.WARNING, "server.drain_deadline", sessions=front.sessions)
            front.end_sessions()
        elif self._ended_at is not None and now >= self._ended_at + _CLOSE_SECONDS:
            self.should_exit = True

    def _end_idle_connections(self) -> None:
        """Let no connection wait for another request: clients ask another server at once."""
        self.config.timeout_keep_alive = 0  # of connections that are still to come
        for connection in list(self.server_state.connections):
            if isinstance(connection, GuardedHttp):
                connection.end_idle()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.on_stopping is not None:
            await self.on_stopping()
        if self._front.sessions:
            self._front.end_sessions()
            await asyncio.sleep(0)  # the writers send the ends of the sessions
        await super().shutdown(sockets)
        event(log, logging.INFO, "server.stopped", exit_code=self.exit_code)
