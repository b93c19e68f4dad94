"""The process of one front of several, started by the parent (supervisor.py), which tells it
where the engines are and hands it accepted sockets."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
import shutil
import socket
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from realtime_tts.config import ServerConfig
from realtime_tts.engine.addresses import Addresses
from realtime_tts.engine.interface import EngineInfo
from realtime_tts.engine.link import EngineStatus
from realtime_tts.engine.links import shared_links
from realtime_tts.engine.load import tokenizer_loaders, voice_library
from realtime_tts.errors import ConfigError
from realtime_tts.fronts import wire
from realtime_tts.fronts.acceptor import SocketLost, received
from realtime_tts.fronts.asks import Asks
from realtime_tts.fronts.merged_metrics import families_of
from realtime_tts.garbage import calm_garbage_collector
from realtime_tts.logs import configure_logging, event
from realtime_tts.metrics import Metrics, Page
from realtime_tts.parent_process import Parent
from realtime_tts.server.lifecycle import ACCEPTED_AT_ONCE
from realtime_tts.server.occupancy import Occupancy
from realtime_tts.server.run import make_front, server_for
from realtime_tts.server.tokens import UsedByAll

log = logging.getLogger(__name__)

_BEAT_SECONDS = 0.1
_RETRY_SECONDS = 0.5
_PAGE_SECONDS = 5.0
_LAST_SOCKETS_SECONDS = 1.0


class FrontMetrics(Metrics):
    """The metrics of a front, without those that the parent shows: they would be added up."""

    def watch_engine(self, status: Callable[[], EngineStatus]) -> None:
        """Show nothing."""

    def describe_engine(self, infos: Iterable[EngineInfo]) -> None:
        """Show nothing."""

    def watch_certificate(self, expires: Callable[[], float]) -> None:
        """Show nothing."""


class FrontProcess:
    """One front, its sockets and its parent. Must be made on the event loop that it runs on."""

    def __init__(self, parent: Parent, spec: wire.FrontSpec) -> None:
        self._parent = parent
        self._folder = spec.folder
        self._loop = asyncio.get_running_loop()
        self._sender = ThreadPoolExecutor(1, "parent-sender")  # a pipe may be full
        self._sockets = socket.socket(fileno=spec.sockets)
        self._sockets.setblocking(False)
        self._row = Occupancy(spec.occupancy, spec.fronts).row(spec.number)
        self._received = 0
        self._have_all = asyncio.Event()  # the sockets: no more come
        link, self._engines = shared_links(spec.engines, spec.infos)
        self._found: dict[int, Addresses] = {}
        self._pages = Asks[Parent, Page]()
        tokenizers = tokenizer_loaders(spec.engines)
        self._metrics = FrontMetrics()
        voices = voice_library(spec.engines, spec.fronts)
        config = share_of_addresses(spec.config, spec.fronts)
        self._front = make_front(
            config, link, tokenizers, self._metrics, voices, self._row, spec.number
        )
        self._front.metrics_page = self._page_of_all
        self._front.used_tokens = UsedByAll(spec.folder / "used-tokens")
        if self._front.access is not None:
            self._front.access.share(spec.folder, spec.number)
        self._front.engine.on_ready = self._ready
        self._preparing: set[asyncio.Task[None]] = set()
        self._take_over: Callable[[], None] = lambda: None
        self._fronts = spec.fronts
        self._server = server_for(self._front)

    async def run(self) -> int:
        """Serve until the parent ends this front; return the exit status."""
        self._parent.listen(self._receive, at_end=self._tidy_up)
        self._server.on_started = self._started
        self._server.on_stopping = self._stopping
        await self._server.serve([])
        return self._server.exit_code

    def _started(self) -> None:
        self._loop.add_reader(self._sockets, self._take)
        self._send(wire.Listening())
        self._beat()

    async def _stopping(self) -> None:
        """Take the last sockets: once the parent knows, it closes its end behind them, and hands
        others to another front, if there still is one."""
        self._send(wire.Stopping())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_SOCKETS_SECONDS):
                await self._have_all.wait()
        self._loop.remove_reader(self._sockets)
        self._sockets.close()

    # To the parent.

    def _send(self, message: wire.Up) -> None:
        self._sender.submit(self._parent.send, wire.encode(message))

    def _ready(self) -> None:
        calm_garbage_collector()
        self._send(wire.Ready())

    def _beat(self) -> None:
        """Report that the event loop moves, and how full this front is, again and again."""
        self._row.beat(self._received - self._server.sockets)
        self._front.tell_others()
        self._loop.call_later(_BEAT_SECONDS, self._beat)

    async def _page_of_all(self, accept: str) -> Page:
        pages, _ = await self._pages.ask(
            [self._parent], lambda _, ask: self._send(wire.PageWanted(ask, accept)), _PAGE_SECONDS
        )
        if self._parent not in pages:
            raise TimeoutError
        return pages[self._parent]

    # From the parent.

    def _receive(self, data: bytes) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: this front has ended
            self._loop.call_soon_threadsafe(self._do, wire.decode_down(data))

    def _tidy_up(self) -> None:
        """Remove the shared folder, because the parent was killed before it could."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _do(self, message: wire.Down) -> None:
        match message:
            case wire.EngineFound(engine, folder):
                self._found[engine] = addresses = Addresses(Path(folder))
                self._reach(engine, addresses)
            case wire.EngineLost(engine, failure):
                self._found.pop(engine, None)
                self._engines[engine].lost(failure)
            case wire.Drain():
                self._server.request_drain()
            case wire.Prepare(ask, config):
                task = asyncio.create_task(self._prepare(ask, pickle.loads(config)))
                self._preparing.add(task)
                task.add_done_callback(self._preparing.discard)
            case wire.TakeOver(ask):
                self._take_over()
                self._send(wire.TakenOver(ask))
            case wire.FamiliesWanted(ask):
                self._sender.submit(self._tell_families, ask)
            case wire.PageMade(ask, page):
                self._pages.answered(self._parent, ask, page)

    async def _prepare(self, ask: int, config: ServerConfig) -> None:
        why = None
        try:
            self._take_over = await self._front.reloads.prepare(
                share_of_addresses(config, self._fronts)
            )
        except ConfigError as error:
            why = str(error)
        self._send(wire.Prepared(ask, why))

    def _reach(self, engine: int, addresses: Addresses) -> None:
        if self._found.get(engine) is not addresses:
            return  # the engine has ended meanwhile
        try:
            self._engines[engine].found(addresses)
        except OSError as error:  # too many open files, for example
            event(log, logging.ERROR, "engine.not_reached", engine=engine, why=str(error))
            self._loop.call_later(_RETRY_SECONDS, self._reach, engine, addresses)

    def _tell_families(self, ask: int) -> None:
        families = families_of(self._metrics.registry)
        self._parent.send(wire.encode(wire.Families(ask, families)))

    def _take(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted = received(self._sockets)
            except EOFError:
                self._loop.remove_reader(self._sockets)
                self._have_all.set()
                return
            except SocketLost:
                self._received += 1  # it counts as closed
                return
            if accepted is None:
                return
            self._received += 1
            self._server.take(accepted)


def share_of_addresses(config: ServerConfig, fronts: int) -> ServerConfig:
    """Divide the limits of client addresses among the fronts, since an address connects to all."""
    whole = config.addresses
    return replace(
        config,
        addresses=replace(
            whole,
            connections_per_second=whole.connections_per_second / fronts,
            handshakes=-(-whole.handshakes // fronts),
            sockets_without_key=-(-whole.sockets_without_key // fronts),
        ),
    )


def main(parent: Parent) -> int:
    """Run a front; the parent's first message is the pickled `FrontSpec`."""
    spec = pickle.loads(parent.receive())
    assert isinstance(spec, wire.FrontSpec)
    config, fields = spec.config, {"front": spec.number}
    configure_logging(
        config.log_format, config.log_level, access_log=config.access_log, fields=fields
    )

    async def serve() -> int:
        return await FrontProcess(parent, spec).run()

    try:
        return asyncio.run(serve())
    except ConfigError as error:  # a file that was right when the server started
        event(log, logging.ERROR, "front.not_started", front=spec.number, why=str(error))
        return 1
    finally:
        logging.shutdown()
