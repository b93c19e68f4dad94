"""The multiprocess engine client: the loop runs in a child process, which is watched and restarted.

This is the default on a GPU, where a step is a few milliseconds of Python that would compete with
the event loop. A fault that kills or hangs an engine does not take the server with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
from collections.abc import Callable
from dataclasses import dataclass

from realtime_tts.engine import wire
from realtime_tts.engine.addresses import Addresses
from realtime_tts.engine.child import ChildSpec
from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.health import EngineHealth, ProcessObserver
from realtime_tts.engine.interface import Engine, Progress, no_voice
from realtime_tts.engine.link import Event
from realtime_tts.engine.remote import RemoteEngine
from realtime_tts.engine.spawn import Process
from realtime_tts.logs import event
from realtime_tts.restarts import Restarts
from tts_scheduler import SchedulerConfig

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Supervision:
    """When an engine counts as hung, and how it is restarted; all in seconds.

    `hang_seconds`: a step that takes longer, or silence that lasts longer, is a hang.
    `loading_hang_seconds`: the longest silence while it loads, which may hold the interpreter long.
    `first_delay` before the first restart, doubled up to `longest_delay`. After `max_restarts`
    within `window_seconds` the engine is given up: somebody has to look. `stop_seconds`: how long
    an engine may take to stop before it is killed.
    """

    hang_seconds: float = 10.0
    loading_hang_seconds: float = 120.0
    first_delay: float = 0.25
    longest_delay: float = 30.0
    max_restarts: int = 5
    window_seconds: float = 600.0
    stop_seconds: float = 3.0
    tick_seconds: float = 0.25

    def restarts(self) -> Restarts:
        """Return a new count of restarts, with these delays."""
        return Restarts(self.first_delay, self.longest_delay, self.window_seconds)


OnAddresses = Callable[[Addresses | None], None]
"""Called with the addresses of each new process of the engine, and with None when it ends."""


class MultiprocessEngine(RemoteEngine):
    """An `EngineLink` whose loop runs in a child process. `name` is the engine's in the log.

    `load` builds the engine in the child: it is pickled, as are its arguments. `registered` returns
    whether a name is that of a registered voice. The first start must succeed, as with the inline
    engine; later ends are followed by a restart. Turns that an ending engine was speaking fail with
    `engine_restarted`; while none runs, new ones are refused. `on_addresses` is for fronts
    that share the engine.
    """

    def __init__(
        self,
        load: Callable[[Progress], Engine],
        config: SchedulerConfig,
        *,
        guards: GuardConfig | None = None,
        observer: ProcessObserver | None = None,
        progress: Progress | None = None,
        supervision: Supervision | None = None,
        registered: Callable[[str], bool] = no_voice,
        name: str = "engine",
        on_addresses: OnAddresses = lambda addresses: None,
    ) -> None:
        super().__init__(name, EngineHealth(observer, progress), registered)
        self._spec = pickle.dumps(ChildSpec(load, config, guards))
        self._supervision = supervision or Supervision()
        self._on_addresses = on_addresses
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._restarts = self._supervision.restarts()
        self._stopping = asyncio.Event()

    # The link.

    @property
    def pid(self) -> int | None:
        """The child's process id; None while there is no child."""
        return None if self._process is None else self._process.pid

    @property
    def addresses(self) -> Addresses | None:
        """Where other fronts can find the engine; None while it does not run."""
        return None if self._process is None else self._process.addresses

    def start(self, deliver: Callable[[list[Event]], None]) -> None:
        assert self._task is None, "an engine starts once"
        self._deliver = deliver
        self._task = asyncio.create_task(self._supervise(), name=f"supervise-{self.name}")

    async def stop(self) -> None:
        """Stop the loop after the current step; a child that still loads is killed."""
        self._stopping.set()
        if self._task is None:
            return
        if self._process is not None:
            if self._health.ready:
                self._process.channel.send(wire.Stop())
            else:
                self._process.kill()
        await asyncio.wait([self._task], timeout=self._supervision.stop_seconds)
        if self._process is not None:
            self._process.kill()
        await self._task

    # Supervision.

    async def _supervise(self) -> None:
        while not self._stopping.is_set():
            why = await self._life()
            if self._stopping.is_set():
                self._fail_open("engine_stopped", "the engine was stopped")
                return
            self._health.ended()
            self._interrupted()
            planned = self._health.leaving
            delay = 0.0 if planned else self._restarts.ended()
            self._failure = None if planned else self._final(why)
            self._on_addresses(None)
            if self._failure is not None:
                event(log, logging.ERROR, "engine.given_up", engine=self.name, why=self._failure)
                return
            self._health.restarted()
            if planned:
                event(log, logging.INFO, "engine.restarts", engine=self.name)
                continue
            event(log, logging.ERROR, "engine.died", engine=self.name, why=why, restart_in=delay)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay)

    async def _life(self) -> str:
        """Run one process from its start to its end; return why it ended."""
        self._health.born()
        try:
            how = await self._run_process()
        except Exception as error:  # a machine that cannot start another process, or a bug of ours
            log.exception("engine.not_run", extra={"fields": {"engine": self.name}})
            how = f"its process could not be run: {error}"
        return self._health.last_words or how

    async def _run_process(self) -> str:
        process = self._process = Process(self._spec, self.name, self._on_message)
        self._channel = process.channel
        self._on_addresses(process.addresses)
        watch = asyncio.create_task(self._watch(process), name=f"watch-{self.name}")
        try:
            await process.start()
            if self._stopping.is_set():
                process.kill()
            return await process.ended()
        finally:
            self._health.ready = False
            watch.cancel()
            await process.close()
            self._process = self._channel = None

    async def _watch(self, process: Process) -> None:
        """Kill a child that hangs. Ticks are counted, so that a pause of this process is not."""
        limits = self._supervision
        while True:
            await asyncio.sleep(limits.tick_seconds)
            self._health.silence += limits.tick_seconds
            ready = self._health.ready
            limit = limits.hang_seconds if ready else limits.loading_hang_seconds
            if self._health.age > limit:
                self._health.last_words = f"it has made no step for {self._health.age:.1f} s"
                process.kill()
                return

    def _final(self, why: str) -> str | None:
        """Return the reason not to start the engine again, or None."""
        if self._health.info is None:
            return why
        if self._restarts.ends <= self._supervision.max_restarts:
            return None
        return f"{why}; it has ended {self._restarts.ends} times, and is not started again"
