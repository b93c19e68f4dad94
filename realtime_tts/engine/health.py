"""What an engine process reports about itself: its load, its health, its steps, its log."""

from __future__ import annotations

import logging
import time
from typing import Protocol

from msgspec.structs import replace

from realtime_tts.engine import wire
from realtime_tts.engine.interface import EngineInfo, Progress
from realtime_tts.engine.link import EngineStatus
from realtime_tts.engine.pulse import LoopObserver


class ProcessObserver(LoopObserver, Protocol):
    """An observer that is also notified of restarts, and of processes that never became ready."""

    def restarted(self) -> None: ...

    def load_failed(self) -> None: ...


class EngineHealth:
    """The health of one engine, through all its processes.

    `info`: set once a process has been ready, and kept. `silence`: seconds, counted by its watcher,
    since the last message of the process. `last_words`: why it ends, if it or its watcher knows.
    """

    def __init__(self, observer: ProcessObserver | None, progress: Progress | None) -> None:
        self.info: EngineInfo | None = None
        self.ready = self._loaded = False
        self.silence = 0.0
        self.last_words: str | None = None
        self._observer = observer
        self._progress = progress
        self._status = EngineStatus(False)
        self._moved_at = 0.0

    @property
    def leaving(self) -> bool:
        """Whether the process was told to make room for a successor."""
        return self._status.leaving

    @property
    def age(self) -> float:
        """Seconds since the last known activity of the loop."""
        return self._status.last_step_age + self.silence

    def status(self, failure: str | None) -> EngineStatus:
        if not self.ready or failure is not None:
            return EngineStatus(False, failure=failure)
        silence = max(0.0, time.monotonic() - self._moved_at)
        return replace(self._status, ready=True, last_step_age=self.age, silence=silence)

    def born(self) -> None:
        """Begin with a new process, of which nothing is known yet."""
        self.ready = self._loaded = False
        self.silence = 0.0
        self.last_words = None
        self._status = EngineStatus(False)

    def ended(self) -> None:
        """Record that the process has ended unexpectedly."""
        if self._observer is not None and not self._loaded:
            self._observer.load_failed()

    def restarted(self) -> None:
        if self._observer is not None:
            self._observer.restarted()

    def heard(self, message: wire.Up) -> None:
        """Handle a message of the process."""
        self.silence = 0.0
        match message:
            case wire.Happened(_, steps, guards):
                self._moved_at = time.monotonic()
                self._count(steps, guards)
            case wire.Heartbeat(status, busy):
                self._moved_at, self._status = time.monotonic() - busy, status
            case wire.Loading(what, done, total):
                if self._progress is not None:
                    self._progress(what, done, total)
            case wire.Ready(info, capacity):
                self.info, self.ready, self._loaded = info, True, True
                self._moved_at = time.monotonic()
                self._status = EngineStatus(True, capacity=capacity)
            case wire.LogLine():
                _log(message)
            case wire.Broken(why):
                self.last_words = why
            case wire.Stopped():
                self.ready = False

    def _count(self, steps: list[wire.MadeStep], guards: list[str]) -> None:
        if self._observer is None:
            return
        for step in steps:
            self._observer.step(step.seconds, step.prefills, step.decodes)
        for reason in guards:
            self._observer.guard(reason)


def _log(line: wire.LogLine) -> None:
    """Log a record of the engine's process here, with this process's handlers and levels."""
    logger = logging.getLogger(line.logger)
    if logger.isEnabledFor(line.level):
        record = logger.makeRecord(
            line.logger,
            line.level,
            "",
            0,
            "%s",
            (line.message,),
            None,
            extra={"fields": line.fields},
        )
        record.exc_text = line.trace
        logger.handle(record)
