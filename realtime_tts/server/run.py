"""Run a server: in the foreground (`serve`) or inside somebody's event loop (`running`)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import uvicorn

from realtime_tts.config import ServerConfig
from realtime_tts.configuration.following import Source, following
from realtime_tts.engine.failover import Failover
from realtime_tts.engine.link import EngineLink
from realtime_tts.errors import EngineError
from realtime_tts.garbage import calm_garbage_collector, keep_imports
from realtime_tts.logs import event
from realtime_tts.metrics import Metrics
from realtime_tts.server.agent import answering
from realtime_tts.server.app import create_app
from realtime_tts.server.auth import OPEN_PATHS
from realtime_tts.server.checks import check_access, check_tracing
from realtime_tts.server.engine_host import EngineHost
from realtime_tts.server.front import Front
from realtime_tts.server.guarded import guarded
from realtime_tts.server.http import GuardedHttp
from realtime_tts.server.lifecycle import ACCEPTED_AT_ONCE, DrainingServer
from realtime_tts.server.listening import bind, bind_agent
from realtime_tts.server.occupancy import FrontRow
from realtime_tts.server.tls import Certificate
from realtime_tts.server.websocket import GuardedWebSocket
from realtime_tts.text.tokenizer import LoadTokenizer
from realtime_tts.tracing.names import FRONT
from realtime_tts.voices.library import VoiceLibrary
from realtime_tts.voices.stored import StoredRegistry

if TYPE_CHECKING:
    from realtime_tts.tracing.tracer import Tracer

log = logging.getLogger(__name__)


def serve(
    config: ServerConfig,
    make_link: Callable[[], EngineLink],
    load_tokenizer: LoadTokenizer,
    metrics: Metrics,
    *,
    make_voices: Callable[[], VoiceLibrary | None] | None = None,
    on_ready: Callable[[int], None] | None = None,
    on_stuck: Callable[[], None] | None = None,
    source: Source | None = None,
    loading: Callable[[], str] = str,
) -> int:
    """Listen, load the engine, serve until SIGTERM or SIGINT; return the process's exit code.

    `make_link` and `make_voices` are called on the running event loop. `on_ready` gets the port
    once turns are accepted. `on_stuck` is called before the process is ended with an engine that
    does not stop, perhaps because it loads a model. New settings of `source` are applied.
    `loading`: see `EngineHost`. Raises ConfigError if it cannot listen, or use the TLS files.
    """
    keep_imports()
    certificate = Certificate(config.tls) if config.tls else None
    check_access(config)
    sockets = bind(config)
    port = int(sockets[0].getsockname()[1])
    agents = bind_agent(config)

    async def main() -> int:
        voices = None if make_voices is None else make_voices()
        front = make_front(config, make_link(), load_tokenizer, metrics, voices)

        def ready() -> None:
            calm_garbage_collector()
            if on_ready is not None:
                on_ready(port)

        front.engine.on_ready = ready
        front.engine.loading = loading
        server = DrainingServer(_uvicorn_config(front), front, certificate=certificate)
        follow = following(source, front.reloads.apply, metrics, server.request_drain)
        async with answering(agents, front.load), follow:
            await server.serve(sockets)
        if front.engine.stuck:
            if on_stuck is not None:
                on_stuck()
            _leave(front, server.exit_code)
        return server.exit_code

    return asyncio.run(main())


def _leave(front: Front, exit_code: int) -> NoReturn:
    """Exit now: the engine's thread cannot be ended, and Python would wait for it."""
    if front.engine.model is not None:  # else it is loading, which is normal
        event(log, logging.WARNING, "server.engine_stuck")
    logging.shutdown()
    os._exit(exit_code)


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server inside this process."""

    host: str
    port: int
    front: Front
    server: DrainingServer
    agent_port: int | None
    """The port of HAProxy's agent check; None without one."""

    @property
    def url(self) -> str:
        """The address of the server: http(s)://HOST:PORT."""
        return f"http{self._secure}://{self.host}:{self.port}"

    @property
    def websocket_url(self) -> str:
        """The address of its WebSocket: ws(s)://HOST:PORT/v1/tts."""
        return f"ws{self._secure}://{self.host}:{self.port}/v1/tts"

    @property
    def _secure(self) -> str:
        return "" if self.front.config.tls is None else "s"


@contextlib.asynccontextmanager
async def running(
    config: ServerConfig,
    link: EngineLink,
    load_tokenizer: LoadTokenizer,
    metrics: Metrics | None = None,
    *,
    voices: VoiceLibrary | None = None,
    wait_ready: bool = True,
) -> AsyncIterator[RunningServer]:
    """Run a server in this event loop, for tests and for embedding; `port=0` picks a free port.

    It leaves signal handlers alone, and ends the sessions at once when the block is left.
    """
    front = make_front(config, link, load_tokenizer, metrics or Metrics(), voices)
    async with running_front(front, wait_ready=wait_ready) as server:
        yield server


@contextlib.asynccontextmanager
async def running_front(front: Front, *, wait_ready: bool) -> AsyncIterator[RunningServer]:
    """Run a server with this front here. Raises EngineError if its engine cannot load."""
    config, server = front.config, server_for(front)
    sockets = bind(config)
    host, port = sockets[0].getsockname()[:2]
    agents = bind_agent(config)
    agent_port = agents[0].getsockname()[1] if agents else None
    async with answering(agents, front.load), _serving(server, sockets) as task:
        while not server.started or (wait_ready and front.engine.not_ready() is not None):
            if front.engine.load_failure is not None:
                raise EngineError(front.engine.load_failure)
            if task.done():
                raise RuntimeError("the server ended while it started")
            await asyncio.sleep(0.005)
        yield RunningServer(host, port, front, server, agent_port)


@contextlib.asynccontextmanager
async def _serving(
    server: DrainingServer, sockets: list[socket.socket]
) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(server.serve(sockets), name="server")
    try:
        yield task
    finally:
        server.should_exit = True
        await task


def server_for(front: Front) -> DrainingServer:
    """Return a server with this front that leaves signals to its process. Raises ConfigError for
    TLS files that cannot be used."""
    tls = front.config.tls
    certificate = Certificate(tls) if tls else None
    return DrainingServer(
        _uvicorn_config(front), front, certificate=certificate, handle_signals=False
    )


def _uvicorn_config(front: Front) -> uvicorn.Config:
    """Return uvicorn's settings: our protocols, no compression, only named proxies trusted."""
    config = front.config
    shared = config.socket, front.metrics, front.addresses, front.slices
    proxies = config.addresses.trusted_proxies
    logging.getLogger("uvicorn.access").addFilter(_worth_a_line)
    return uvicorn.Config(
        create_app(front),
        loop="asyncio",
        http=guarded(GuardedHttp, *shared),
        ws=guarded(GuardedWebSocket, *shared),
        ws_max_size=config.limits.max_frame_bytes,
        timeout_keep_alive=config.socket.keep_alive,  # type: ignore[arg-type]  # for `call_later`
        ws_ping_interval=config.socket.ping_interval,
        ws_ping_timeout=config.socket.ping_timeout,
        ws_per_message_deflate=False,  # costs 32 times the CPU of a send, and PCM does not shrink
        lifespan="on",
        log_config=None,
        access_log=config.access_log,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        server_header=False,
        backlog=ACCEPTED_AT_ONCE,
        timeout_graceful_shutdown=round(config.socket.close_timeout) + 1,
    )


def _worth_a_line(record: logging.LogRecord) -> bool:
    """Whether an access line of uvicorn is logged. One HAProxy sends four probes a second: lines of
    those that find nothing wrong would hide all others, and are logged at debug only."""
    if logging.getLogger().isEnabledFor(logging.DEBUG) or not isinstance(record.args, tuple):
        return True
    *_, target, _, status = record.args
    return status != 200 or str(target).partition("?")[0] not in OPEN_PATHS


def make_front(
    config: ServerConfig,
    link: EngineLink,
    load_tokenizer: LoadTokenizer,
    metrics: Metrics,
    voices: VoiceLibrary | None,
    others: FrontRow | None = None,
    front: int | None = None,
) -> Front:
    """Make a front over this link, with this number if there are several; it does nothing before
    its application runs. Raises ConfigError if turns should be traced and cannot be."""
    if config.failover_seconds > 0:
        link = Failover(link, config.failover_seconds)
    tracer = _tracer(config, metrics, front)
    engine = EngineHost(
        link,
        load_tokenizer,
        metrics,
        stall_seconds=config.engine_stall_seconds,
        announces=others is None,
    )
    made = Front(config, engine, metrics, voices, others, tracer)
    _watch_background(made)
    return made


def _watch_background(front: Front) -> None:
    """Show what fails beside the turns, which go on."""
    if front.access is not None:
        for task, failing in front.access.failing.items():
            front.metrics.watch_background(task, failing)
    registry = None if front.voices is None else front.voices.registry
    if isinstance(registry, StoredRegistry):
        front.metrics.watch_background("voices", lambda: registry.outage.present)


def _tracer(config: ServerConfig, metrics: Metrics, front: int | None) -> Tracer | None:
    check_tracing(config)
    if not config.tracing:
        return None
    from realtime_tts.tracing.tracer import Tracer

    return Tracer(metrics.spans_dropped.inc, {} if front is None else {FRONT: front})
