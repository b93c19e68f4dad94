"""The parent process of a server with several fronts: it starts and watches engines and fronts,
restarts each of them separately, accepts all sockets and hands them to the fronts.

It opens no session and speaks to no client. A server with one front has no such process: the front
starts its engines itself (run.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace

from realtime_tts.background import cancel
from realtime_tts.config import ServerConfig
from realtime_tts.configuration.following import Source, following
from realtime_tts.configuration.reload import Reloads
from realtime_tts.engine.addresses import Addresses
from realtime_tts.engine.interface import Progress
from realtime_tts.engine.link import EngineLink
from realtime_tts.engine.links import parent_links
from realtime_tts.engine.multiprocess import Supervision
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.fronts import wire
from realtime_tts.fronts.acceptor import Acceptor
from realtime_tts.fronts.child import FrontChild
from realtime_tts.fronts.reloading import Reloading
from realtime_tts.fronts.scraping import Scraping
from realtime_tts.logs import event
from realtime_tts.metrics import Metrics
from realtime_tts.private_folder import make_private, remove_private
from realtime_tts.server.agent import answering
from realtime_tts.server.announcement import announce
from realtime_tts.server.checks import check_access, check_tracing
from realtime_tts.server.listening import bind, bind_agent
from realtime_tts.server.load import Load
from realtime_tts.server.occupancy import Occupancy
from realtime_tts.server.tls import Certificate
from realtime_tts.signals import at_signal, ignore_signals

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.05
_SILENT_SECONDS = 1.0
"""Seconds after which a front that has not moved gets no sockets, as long as another one moves."""
_GRACE_SECONDS = 5.0
"""Seconds that a front may take to end, after what its sessions and its requests have to finish."""

OnReady = Callable[[int, EngineLink], None]


def supervise(
    config: ServerConfig,
    engines: Sequence[EngineConfig],
    fronts: int,
    metrics: Metrics,
    progress: Progress,
    *,
    on_ready: OnReady | None = None,
    supervision: Supervision | None = None,
    source: Source | None = None,
) -> int:
    """Serve with several fronts until SIGTERM or SIGINT. Returns the process's exit code.

    `metrics` are those of this process, above all of the engines. `on_ready` is called with the
    port and the link to all engines once every front accepts turns. All fronts apply new settings
    of `source`. Raises ConfigError if the address cannot be listened on, or the TLS files cannot be
    used.
    """
    reloads = Reloads()
    if config.tls:
        certificate = Certificate(config.tls)  # only to check and watch it: fronts have their own
        reloads.add(certificate)
        metrics.watch_certificate(lambda: certificate.expires)
    check_tracing(config)
    check_access(config)
    listeners = bind(config)
    agents = bind_agent(config)

    async def main() -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            at_signal(number, asyncio.get_running_loop(), lambda: supervisor.drain())
        folder = make_private()
        occupancy = Occupancy.make(fronts)
        try:
            spec = wire.FrontSpec(config, tuple(engines), fronts, folder, occupancy.file)
            supervisor = Supervisor(spec, occupancy, metrics, progress, supervision)
            port = int(listeners[0].getsockname()[1])
            acceptor = Acceptor(listeners, supervisor.fronts_by_load)

            async def apply(config: ServerConfig) -> None:
                take_over = await reloads.prepare(config)
                await supervisor.reload(config)
                take_over()

            follow = following(source, apply, metrics, supervisor.drain)
            with contextlib.closing(acceptor):
                async with answering(agents, supervisor.load), follow:
                    return await supervisor.run(acceptor, port, on_ready)
        finally:
            ignore_signals()
            occupancy.close()
            remove_private(folder)

    return asyncio.run(main())


class Supervisor:
    """Runs engines and fronts on one event loop. `spec`: the settings that all fronts share."""

    def __init__(
        self,
        spec: wire.FrontSpec,
        occupancy: Occupancy,
        metrics: Metrics,
        progress: Progress,
        supervision: Supervision | None = None,
    ) -> None:
        self._spec = spec
        self._occupancy = occupancy
        self._metrics = metrics
        self._restarts = metrics.watch_fronts(lambda: len(self._listening))
        self._scraping = Scraping(metrics)
        self._reloading = Reloading()
        self._starting = asyncio.Lock()  # a front, or new settings
        self._supervision = supervision or Supervision()
        self._link, self._engines = parent_links(spec.engines, metrics, progress, self._on_engine)
        self._fronts: dict[int, FrontChild] = {}  # running fronts, by number
        self._serial = 0
        self._acceptor: Acceptor | None = None
        self._complete = False  # all engines and fronts have been ready once
        self._exit_code = 0
        self._drained = 0  # signals received
        self._ending = asyncio.Event()

    async def run(self, acceptor: Acceptor, port: int, on_ready: OnReady | None) -> int:
        """Run until `drain` or a failure has ended all fronts; return the exit code."""
        self._acceptor = acceptor
        acceptor.start()
        self._metrics.watch_engine(self._link.status)
        self._link.start(lambda events: None)
        keeping = [
            asyncio.create_task(self._keep(number), name=f"front-{number}")
            for number in range(1, self._spec.fronts + 1)
        ]
        waiting = asyncio.create_task(self._until_complete(port, on_ready), name="complete")
        try:
            await asyncio.gather(*keeping)
        finally:
            acceptor.close()
            await cancel(waiting, *keeping)
            await self._scraping.close()
            await self._link.stop()
        event(log, logging.INFO, "server.ended", exit_code=self._exit_code)
        return self._exit_code

    async def reload(self, config: ServerConfig) -> None:
        """Have all fronts apply `config`, including those started later. Raises ConfigError, and
        then none has applied it."""
        async with self._starting:
            await self._reloading.prepare(config, self._fronts.values())
            self._spec = replace(self._spec, config=config)
            await self._reloading.take_over(self._fronts.values())

    def load(self) -> Load:
        """Return how full the server is, which is the answer of each of its fronts, too."""
        status = self._link.status()
        info = self._link.info if self._complete else None
        limits = self._spec.config.limits
        return Load(
            capacity=status.capacity,
            active=status.active,
            queued=status.queued,
            sessions=self._occupancy.sessions,
            max_sessions=limits.sessions_for(0 if info is None else info.slots),
            ready=self._complete and status.ready and bool(self._listening),
            draining=bool(self._drained),
            model=None if info is None else info.model,
        )

    def fronts_by_load(self) -> list[FrontChild]:
        """Return the fronts that may get a socket, the one with the fewest sockets first; those
        that refuse turns, because they have just started, come last."""
        listening = self._listening
        moving = [front for front in listening if front.silence < _SILENT_SECONDS]
        return sorted(moving or listening, key=lambda front: (not front.ready, front.load))

    @property
    def _listening(self) -> list[FrontChild]:
        return [front for front in self._fronts.values() if front.listening]

    def drain(self) -> None:
        """Handle a signal to end: the first lets turns finish, the second ends them at once."""
        self._drained += 1
        self._ending.set()
        for front in self._fronts.values():
            front.send(wire.Drain())
        asyncio.get_running_loop().call_later(self._patience, self._end)

    @property
    def _patience(self) -> float:
        allowed = self._spec.config.drain_seconds if self._drained == 1 else 0.0
        return allowed + self._spec.config.socket.close_timeout + _GRACE_SECONDS

    def _end(self) -> None:
        for front in self._fronts.values():
            front.kill()

    # Engines.

    def _on_engine(self, engine: int, addresses: Addresses | None) -> None:
        """Notify all fronts that an engine process listens at `addresses`, or has ended (None)."""
        for front in self._fronts.values():
            self._notify(front, engine, addresses)

    def _notify(self, front: FrontChild, engine: int, addresses: Addresses | None) -> None:
        if addresses is not None:
            front.send(wire.EngineFound(engine, str(addresses.folder)))
        else:
            failure = self._engines[engine].status().failure
            # Before that, `_until_complete` sees the failure, logs it once, and ends the server.
            front.send(wire.EngineLost(engine, failure if self._complete else None))

    async def _until_complete(self, port: int, on_ready: OnReady | None) -> None:
        """Wait until engines and fronts are ready, or an engine cannot be loaded."""
        while True:
            status = self._link.status()
            if status.failure is not None:
                log.error("engine.load_failed", extra={"fields": {"error": status.failure}})
                self._give_up()
                return
            ready = [front for front in self._fronts.values() if front.ready]
            if status.ready and len(ready) == self._spec.fronts:
                break
            await asyncio.sleep(_POLL_SECONDS)
        info = self._link.info
        announce(info, status)
        self._metrics.describe_engine(info.all_models)
        self._complete = True
        if on_ready is not None:
            on_ready(port, self._link)

    def _give_up(self) -> None:
        self._exit_code = 1
        self._drained += 1
        self._ending.set()
        self._end()

    # Fronts.

    async def _keep(self, number: int) -> None:
        """Keep a front running until the server ends, however often it fails: the others serve
        meanwhile."""
        restarts = self._supervision.restarts()
        while not self._drained:
            why = await self._life(number)
            if self._drained:
                return
            if not self._complete:
                event(log, logging.ERROR, "front.not_started", front=number, why=why)
                self._give_up()
                return
            self._restarts.inc()
            delay = restarts.ended()
            event(log, logging.ERROR, "front.died", front=number, why=why, restart_in=delay)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), delay)

    async def _life(self, number: int) -> str:
        """Run one process of a front from its start to its end; returns why it ended."""
        row = self._occupancy.row(number)
        async with self._starting:
            self._serial += 1
            infos = tuple(engine.info for engine in self._engines) if self._complete else ()
            spec = replace(self._spec, number=number, serial=self._serial, infos=infos)
            try:
                front = await FrontChild.start(spec, row, self._on_message)
            except OSError as error:
                return f"its process could not be run: {error}"
            self._fronts[number] = front
        watch = asyncio.create_task(self._watch(front), name=f"watch-front-{number}")
        try:
            for engine, link in enumerate(self._engines):
                self._notify(front, engine, link.addresses)
            for _ in range(self._drained):  # signals that came while the front was being started
                front.send(wire.Drain())
            return f"its process {await front.ended()}"
        finally:
            watch.cancel()
            del self._fronts[number]
            self._scraping.ended(front)
            self._reloading.asks.ended(front)
            await front.close()

    async def _watch(self, front: FrontChild) -> None:
        """Kill a front that hangs. Counts ticks, so that a pause of this process does not count."""
        limits = self._supervision
        while True:
            await asyncio.sleep(limits.tick_seconds)
            front.tick(limits.tick_seconds)
            limit = limits.hang_seconds if front.listening else limits.loading_hang_seconds
            if front.silence > limit:
                event(log, logging.ERROR, "front.hangs", front=front.number, seconds=front.silence)
                front.kill()
                return

    def _on_message(self, front: FrontChild, message: wire.Up) -> None:
        match message:
            case wire.Listening():
                front.listening = True
                assert self._acceptor is not None, "run() comes before any front"
                self._acceptor.start()
            case wire.Stopping():
                front.stop_taking()
                if self._drained and not self._listening and self._acceptor is not None:
                    self._acceptor.close()  # who comes now is refused at once, and does not wait
            case wire.Ready():
                front.ready = True
            case wire.PageWanted():
                self._scraping.answer(front, message, list(self._fronts.values()))
            case wire.Families():
                self._scraping.reported(front, message)
            case wire.Prepared(ask, why):
                self._reloading.asks.answered(front, ask, why)
            case wire.TakenOver(ask):
                self._reloading.asks.answered(front, ask, None)
