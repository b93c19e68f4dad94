"""The in-process engine client: the engine loop runs in a thread of the server's process.

The default on CPU and in tests. torch releases the interpreter lock inside its kernels, so the
event loop keeps breathing; on a GPU, where a step is a few milliseconds of Python, the loop
belongs in a process of its own.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable

from msgspec.structs import replace

from realtime_tts.checkpoint import ignore_progress
from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.interface import Engine, EngineInfo, Progress, UtteranceSpec
from realtime_tts.engine.link import Command, EngineLink, EngineStatus, Event, Open, Refused
from realtime_tts.engine.loop import EngineLoop
from realtime_tts.engine.pulse import LoopObserver
from realtime_tts.engine.startup import start_engine
from realtime_tts.errors import CheckpointError, ConfigError
from tts_scheduler import SchedulerConfig

log = logging.getLogger(__name__)

SWITCH_SECONDS = 0.0005
"""Seconds that one thread may keep the interpreter from another that wants it. A step asks for it
after each of its hundreds of operations; with Python's own 5 ms for each, it would take seconds
where the event loop is busy, for instance with refusals."""

MAX_FAILURES = 10
"""Failures in a row at which the engine is given up. They are more than for a process, because
nothing restarts this engine, and a turn that is the cause may be tried on it five times
(trials.py)."""


def _unavailable(id: str, why: str) -> Refused:
    return Refused(id, "engine_unavailable", why, 1.0)


class InProcessEngine(EngineLink):
    """An `EngineLink` whose loop runs in a daemon thread.

    `load` builds the engine inside that thread, so the server answers `/livez` meanwhile;
    `status().ready` becomes true after its warm-up.
    """

    def __init__(
        self,
        load: Callable[[Progress], Engine],
        config: SchedulerConfig,
        *,
        guards: GuardConfig | None = None,
        observer: LoopObserver | None = None,
        progress: Progress = ignore_progress,
    ) -> None:
        self._load = load
        self._config = config
        self._guards = guards
        self._observer = observer
        self._progress = progress
        self._deliver: Callable[[list[Event]], None] | None = None
        self._asyncio_loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._engine: Engine | None = None
        self._loop: EngineLoop | None = None
        self._failure: str | None = None
        self._over: str | None = None
        """Why no commands are accepted any more; set on the asyncio loop."""
        self._stopping = False
        self._finished = asyncio.Event()
        """Whether the engine's thread has nothing left to do; set on the asyncio loop."""

    @property
    def info(self) -> EngineInfo:
        """What the engine can do. Only available once it is ready."""
        assert self._engine is not None, "the engine is not loaded yet: check status().ready"
        return self._engine.info

    def start(self, deliver: Callable[[list[Event]], None]) -> None:
        """Start loading; must be called on the running asyncio loop."""
        assert self._thread is None, "an engine starts once"
        self._asyncio_loop = asyncio.get_running_loop()
        self._deliver = deliver
        sys.setswitchinterval(min(SWITCH_SECONDS, sys.getswitchinterval()))
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    def submit(self, *commands: Command) -> None:
        loop = self._loop
        if loop is not None and self._over is None:
            loop.submit(*commands)
            return
        message = self._over or "the engine is still loading"
        for command in commands:
            if isinstance(command, Open):
                self._publish([_unavailable(command.id, message)])

    def check(self, spec: UtteranceSpec) -> None:
        assert self._engine is not None, "the engine is not loaded yet: check status().ready"
        self._engine.check(spec)

    def status(self) -> EngineStatus:
        loop = self._loop
        if loop is None or self._failure is not None:
            return EngineStatus(False, failure=self._failure)
        return replace(loop.load, last_step_age=time.monotonic() - loop.pulse.last_alive)

    async def stop(self) -> None:
        """Stop the loop after the step under way and wait for its thread.

        No thread of asyncio's own waits for it: Python would not end before that one does, and a
        model may load for minutes.
        """
        self._stopping = True
        if self._loop is not None:
            self._loop.stop()
        if self._thread is not None:
            await self._finished.wait()
            self._thread.join()

    def _ended(self, failure: str | None) -> None:
        """Refuse commands from now on, because the engine thread has ended. This runs on the event
        loop, where commands arrive, so none can slip in between."""
        self._failure, self._over = failure, failure or "the engine was stopped"
        assert self._deliver is not None, "start() comes before the thread"
        if self._loop is not None and (left := self._loop.pending.left()):
            self._deliver([_unavailable(id, self._over) for id in left])
        self._finished.set()

    # In the engine's thread.

    def _run(self) -> None:
        failure: str | None = None
        try:
            self._engine, scheduler = start_engine(self._load, self._config, self._progress)
            loop = EngineLoop(
                self._engine,
                scheduler,
                self._publish,
                guards=self._guards,
                observer=self._observer,
                max_failures=MAX_FAILURES,
            )
            self._loop = loop
            if not self._stopping:
                loop.run()
        except (CheckpointError, ConfigError) as error:
            failure = str(error)  # says it all: a traceback would only hide it
        except Exception as error:
            log.exception("the engine failed")
            failure = f"{type(error).__name__}: {error}"
        finally:
            self._on_asyncio(self._ended, failure)

    def _publish(self, events: list[Event]) -> None:
        assert self._deliver is not None, "start() comes before the first event"
        self._on_asyncio(self._deliver, events)

    def _on_asyncio(self, callback: Callable[..., object], *args: object) -> None:
        assert self._asyncio_loop is not None, "start() comes before the thread"
        try:
            self._asyncio_loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:
            # The asyncio loop has closed: the engine's last events have no receiver.
            log.debug("event loop closed; events dropped")
