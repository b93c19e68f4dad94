"""The engine's process: what runs at the other end of `multiprocess.MultiprocessEngine`.

The main thread runs the engine loop. A second one hands it the front's commands, a third tells the
front twice a second that the process lives, and a fourth waits for the front's end (see
child_process.py): nothing but the spec comes through standard input.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import shutil
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import zmq

from realtime_tts.child_process import Parent
from realtime_tts.engine import wire
from realtime_tts.engine.guards import GuardConfig
from realtime_tts.engine.interface import Engine, Progress
from realtime_tts.engine.link import Event
from realtime_tts.engine.loop import EngineLoop
from realtime_tts.engine.warm_up import taught_scheduler
from realtime_tts.errors import CheckpointError, ConfigError
from realtime_tts.garbage import calm_garbage_collector
from realtime_tts.memory_limits import told_memory_limits
from tts_scheduler import SchedulerConfig

HEARTBEAT_SECONDS = 0.5
_LINGER_MS = 2_000


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """All a fresh interpreter needs to become an engine; it is pickled on its way there."""

    load: Callable[[Progress], Engine]
    scheduler: SchedulerConfig
    guards: GuardConfig | None


@dataclass(frozen=True, slots=True)
class Addresses:
    """The sockets through which front and engine talk, in the front's private folder."""

    folder: Path
    log_level: int

    @property
    def up(self) -> str:
        """The address at which the front listens."""
        return f"ipc://{self.folder / 'up'}"

    @property
    def down(self) -> str:
        """The address at which the engine listens."""
        return f"ipc://{self.folder / 'down'}"


class Uplink:
    """Sends messages to the front, from any thread."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], address: str) -> None:
        self._socket = context.socket(zmq.PUSH)
        self._socket.linger = _LINGER_MS
        self._socket.connect(address)
        self._lock = threading.Lock()

    def send(self, message: wire.Up) -> None:
        data = wire.encode(message)
        with self._lock:
            if not self._socket.closed:
                self._socket.send(data)

    def close(self) -> None:
        with self._lock:
            self._socket.close()


class UplinkHandler(logging.Handler):
    """Sends log records to the front, whose logging decides what becomes of them."""

    def __init__(self, uplink: Uplink) -> None:
        super().__init__()
        self._uplink = uplink

    def emit(self, record: logging.LogRecord) -> None:
        fields = {
            str(name): value if isinstance(value, str | int | float | None) else str(value)
            for name, value in getattr(record, "fields", {}).items()
        }
        trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else None
        message = record.getMessage()
        try:
            line = wire.LogLine(record.name, record.levelno, message, fields, trace)
            self._uplink.send(line)
        except Exception:
            self.handleError(record)


class Recorder:
    """Notes what the front's metrics want to know, until it is fetched."""

    def __init__(self) -> None:
        self._steps: list[wire.MadeStep] = []
        self._guards: list[str] = []

    def step(self, seconds: float, prefills: int, decodes: int) -> None:
        self._steps.append(wire.MadeStep(seconds, prefills, decodes))

    def guard(self, reason: str) -> None:
        self._guards.append(reason)

    def happened(self, events: list[Event]) -> wire.Happened:
        """Make a message of these events and all that was noted since the last call."""
        steps, guards, self._steps, self._guards = self._steps, self._guards, [], []
        return wire.Happened(events, steps, guards)


class Age:
    """Tells for how long a loop has not moved; it is asked at every heartbeat.

    It is never longer than there were heartbeats: while the whole process is paused (a container,
    a virtual machine), clocks may go on, and nobody hangs.
    """

    def __init__(self) -> None:
        self._last_alive = 0.0
        self._heartbeats = 0

    def at(self, now: float, last_alive: float) -> float:
        """Seconds since `last_alive`, both on one clock."""
        self._heartbeats = self._heartbeats + 1 if last_alive == self._last_alive else 1
        self._last_alive = last_alive
        return min(now - last_alive, self._heartbeats * HEARTBEAT_SECONDS)


class Child:
    """One engine and its loop, between the two sockets."""

    def __init__(self, parent: Parent, addresses: Addresses) -> None:
        self._parent = parent
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._context = context
        self._uplink = Uplink(context, addresses.up)
        self._downlink = context.socket(zmq.PULL)
        self._downlink.rcvhwm = 0
        self._downlink.bind(addresses.down)
        self._loop: EngineLoop | None = None
        _log_to(self._uplink, addresses.log_level)

    def run(self, spec: bytes) -> int:
        """Load what `spec` (a pickled ChildSpec) says, serve until told to stop; the exit status.

        Everything sent has reached the front's end of the socket when it returns.
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
        self._uplink.close()
        if self._loop is None:
            self._downlink.close()
        self._context.term()  # ends the reader, too

    def _serve(self, spec: ChildSpec) -> None:
        with told_memory_limits():
            engine = spec.load(self._progress)
            scheduler = taught_scheduler(engine, spec.scheduler, self._progress)
        recorder = Recorder()
        loop = EngineLoop(
            engine,
            scheduler,
            lambda events: self._uplink.send(recorder.happened(events)),
            guards=spec.guards,
            observer=recorder,
        )
        calm_garbage_collector()
        self._loop = loop
        threading.Thread(target=self._read, args=(loop,), name="reader", daemon=True).start()
        self._uplink.send(wire.Ready(engine.info, scheduler.capacity))
        loop.run()

    def _progress(self, what: str, done: int, total: int) -> None:
        self._uplink.send(wire.Loading(what, done, total))

    # Threads of their own.

    def _read(self, loop: EngineLoop) -> None:
        """Commands to the loop, until Stop; a loop that cannot hear any more is stopped, too."""
        try:
            with contextlib.suppress(zmq.ContextTerminated), contextlib.closing(self._downlink):
                while isinstance(message := wire.decode_down(self._downlink.recv()), wire.Commands):
                    loop.submit(*message.commands)
        finally:
            loop.stop()

    def _send_heartbeats(self) -> None:
        age = Age()
        while True:
            loop = self._loop
            if loop is None:
                self._uplink.send(wire.Heartbeat(0, 0, 0, 0, 0.0))
            else:
                load, still = loop.load, age.at(time.monotonic(), loop.last_alive)
                self._uplink.send(
                    wire.Heartbeat(load.active, load.held, load.queued, load.capacity, still)
                )
            time.sleep(HEARTBEAT_SECONDS)
            self._parent.check()


def main(parent: Parent) -> int:
    """Serve one front: its first message says where it listens, and what to load."""
    addresses, spec = pickle.loads(parent.receive())
    assert isinstance(addresses, Addresses)

    def tidy_up() -> None:
        shutil.rmtree(addresses.folder, ignore_errors=True)

    parent.listen(lambda message: None, at_end=tidy_up)
    return Child(parent, addresses).run(spec)


def _log_to(uplink: Uplink, level: int) -> None:
    root = logging.getLogger()
    root.handlers[:] = [UplinkHandler(uplink)]
    root.setLevel(level)
    logging.captureWarnings(True)
