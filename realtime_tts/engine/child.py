"""The engine's process: the other end of `multiprocess.MultiprocessEngine`.

The main thread runs the engine loop, and reads the fronts' commands between two steps. A second one
sends a heartbeat ten times a second, and the messages that fronts have not taken at once. A third
waits for the parent's end (see child_process.py): only the spec comes through standard input.

The parent, which is the only front of most servers, gets everything. Other fronts get the events of
their own utterances and the engine's load. What the parent only counts comes with its next event,
or with the heartbeat: to wake it after each step of other fronts' turns would delay the next step.
"""

from __future__ import annotations

import logging
import pickle
import signal
import socket
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from msgspec.structs import replace

from realtime_tts.engine import wire
from realtime_tts.engine.addresses import Addresses
from realtime_tts.engine.downlink import Downlink
from realtime_tts.engine.fronts import Fronts
from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.interface import Engine, Progress
from realtime_tts.engine.line import Line, Waiting
from realtime_tts.engine.link import RESTARTED, EngineStatus, Event
from realtime_tts.engine.loop import EngineLoop
from realtime_tts.engine.pulse import Age
from realtime_tts.engine.startup import start_engine
from realtime_tts.errors import CheckpointError, ConfigError
from realtime_tts.garbage import calm_garbage_collector
from realtime_tts.parent_process import Parent
from tts_scheduler import SchedulerConfig

HEARTBEAT_SECONDS = 0.1
LEAVE_SECONDS = 5.0
"""The longest time that an engine told to leave (SIGUSR1) waits for its turns to move away."""
_LEAST_LEAVE_SECONDS = 0.5  # until all fronts know, and what they sent before has arrived
_LINGER_SECONDS = 1.0
"""The longest time by which a front that reads nothing delays the end."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """Everything that a new process needs to become an engine; it is sent pickled."""

    load: Callable[[Progress], Engine]
    scheduler: SchedulerConfig
    guards: GuardConfig | None


class LineHandler(logging.Handler):
    """Sends log records to the parent, whose logging handles them."""

    def __init__(self, parent: Line) -> None:
        super().__init__()
        self._parent = parent

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._parent.send(_log_line(record))
        except Exception:
            self.handleError(record)


def _log_line(record: logging.LogRecord) -> wire.LogLine:
    fields = {
        str(name): value if isinstance(value, str | int | float | None) else str(value)
        for name, value in getattr(record, "fields", {}).items()
    }
    trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else None
    return wire.LogLine(record.name, record.levelno, record.getMessage(), fields, trace)


class Recorder:
    """Collects what the parent's metrics need, until `happened` takes it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._steps: list[wire.MadeStep] = []
        self._guards: list[str] = []

    def step(self, seconds: float, prefills: int, decodes: int) -> None:
        with self._lock:
            self._steps.append(wire.MadeStep(seconds, prefills, decodes))

    def guard(self, reason: str) -> None:
        with self._lock:
            self._guards.append(reason)

    def happened(self, events: list[Event]) -> wire.Happened | None:
        """Return a message with these events and everything recorded since the last call; None if
        it would be empty."""
        with self._lock:
            steps, guards, self._steps, self._guards = self._steps, self._guards, [], []
        return wire.Happened(events, steps, guards) if events or steps or guards else None


class Child:
    """One engine and its loop, between the streams. Its parent is the first front that connects."""

    def __init__(self, parent: Parent, listener: socket.socket, log_level: int) -> None:
        self._parent = parent
        self._listener = listener
        self._waiting = Waiting()
        self._uplink = self._accepted()
        self._fronts = Fronts()
        self._recorder = Recorder()
        self._loop: EngineLoop | None = None
        self._leaving = False
        _log_to(self._uplink, log_level)

    def run(self, spec: bytes) -> int:
        """Load what `spec` (a pickled ChildSpec) says and serve until told to stop; return the exit
        status.

        What was sent has then reached the fronts that take it within `_LINGER_SECONDS`.
        """
        threading.Thread(target=self._send_heartbeats, name="heartbeat", daemon=True).start()
        try:
            self._serve(pickle.loads(spec))
            self._uplink.send(wire.Stopped())
        except (CheckpointError, ConfigError) as error:
            self._uplink.send(wire.Broken(str(error)))
            return 1
        except Exception as error:
            logging.getLogger(__name__).exception("the engine failed")
            self._uplink.send(wire.Broken(f"{type(error).__name__}: {error}"))
            return 1
        finally:
            self._close()
        return 0

    def _close(self) -> None:
        self._uplink.close(_LINGER_SECONDS)
        self._fronts.close(_LINGER_SECONDS)

    def _accepted(self) -> Line:
        return Line(self._listener.accept()[0], self._waiting)

    def _serve(self, spec: ChildSpec) -> None:
        engine, scheduler = start_engine(spec.load, spec.scheduler, self._progress)
        ready = wire.Ready(engine.info, scheduler.capacity)
        loop = EngineLoop(
            engine,
            scheduler,
            self._publish,
            guards=spec.guards,
            observer=self._recorder,
            commands=Downlink(
                self._listener,
                self._uplink,
                self._fronts,
                ready,
                accept=self._accepted,
                stop=lambda: loop.stop(),
            ),
        )
        calm_garbage_collector()
        self._loop = loop
        self._uplink.send(ready)
        loop.run()
        self._tell_parent([])

    def _publish(self, events: list[Event]) -> None:
        if parents := self._fronts.publish(events):
            self._tell_parent(parents)

    def _tell_parent(self, events: list[Event]) -> None:
        """Send the parent its events, and what its metrics need."""
        if (message := self._recorder.happened(events)) is not None:
            self._uplink.send(message)

    def _progress(self, what: str, done: int, total: int) -> None:
        self._uplink.send(wire.Loading(what, done, total))

    # In a thread of its own, which also sends what fronts have not taken at once.

    def _send_heartbeats(self) -> None:
        age, leaving = Age(HEARTBEAT_SECONDS), 0.0
        while True:
            heartbeat, loop = wire.Heartbeat(EngineStatus(False)), self._loop
            if loop is not None:
                heartbeat = self._heartbeat(loop, age)
                leaving += HEARTBEAT_SECONDS * self._leaving
                if _has_left(loop, leaving):
                    loop.stop(*RESTARTED)
            self._tell_parent([])
            self._uplink.send(heartbeat)
            self._fronts.heartbeat(heartbeat)
            self._waiting.send(HEARTBEAT_SECONDS)
            self._parent.check()

    def _heartbeat(self, loop: EngineLoop, age: Age) -> wire.Heartbeat:
        seconds = age.at(time.monotonic(), loop.pulse.last_alive)
        status = replace(loop.load, last_step_age=seconds, leaving=self._leaving)
        return wire.Heartbeat(status, loop.pulse.busy())

    def leave(self, *_: object) -> None:
        """Let the process end once its turns have moved away, to make room for a successor."""
        self._leaving = True


def _has_left(loop: EngineLoop, seconds: float) -> bool:
    """Return whether an engine that was told to leave `seconds` ago should end now."""
    empty = loop.open_utterances == 0 and seconds >= _LEAST_LEAVE_SECONDS
    return empty or seconds >= LEAVE_SECONDS


def main(parent: Parent) -> int:
    """Run the process. The parent's first message says where to meet and what to load."""
    addresses, file, log_level, spec = pickle.loads(parent.receive())
    assert isinstance(addresses, Addresses)
    parent.listen(lambda message: None, at_end=addresses.remove)
    listener = socket.socket(fileno=file)
    listener.set_inheritable(False)
    child = Child(parent, listener, log_level)
    signal.signal(signal.SIGUSR1, child.leave)
    return child.run(spec)


def _log_to(parent: Line, level: int) -> None:
    root = logging.getLogger()
    root.handlers[:] = [LineHandler(parent)]
    root.setLevel(level)
    logging.captureWarnings(True)
