"""Messages between fronts and an engine process: msgpack structs, each one message of a stream
(stream.py).

One message carries the commands of a front down that belong together, or all events of an engine
step up. PCM travels as plain bytes.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from realtime_tts.engine.interface import EngineInfo
from realtime_tts.engine.link import Command, EngineStatus, Event

# Down: front -> engine ----------------------------------------------------------------------


class Commands(msgspec.Struct, frozen=True, tag=True):
    """Commands of a front, to be applied together."""

    commands: list[Command]


class Stop(msgspec.Struct, frozen=True, tag=True):
    """The parent asks the engine to end after the current step; `Stopped` answers."""


Down = Commands | Stop

# Up: engine -> front ------------------------------------------------------------------------


class Loading(msgspec.Struct, frozen=True, tag=True):
    """Progress of loading: the arguments of `Progress`."""

    what: str
    done: int
    total: int


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The engine is loaded and warm, and takes commands. `capacity` was measured in the warm-up."""

    info: EngineInfo
    capacity: int


class MadeStep(msgspec.Struct, frozen=True, array_like=True):
    """The duration of a step and its number of rows by kind, for the front's metrics."""

    seconds: float
    prefills: int
    decodes: int


class Happened(msgspec.Struct, frozen=True, tag=True):
    """Everything since the last such message: events for turns, and what metrics count."""

    events: list[Event]
    steps: list[MadeStep] = []
    guards: list[str] = []


class Heartbeat(msgspec.Struct, frozen=True, tag=True):
    """The process is alive. `status`: what it knows of itself, not ready while it loads. `busy`:
    seconds since the loop last finished something, 0 while it is idle."""

    status: EngineStatus
    busy: float = 0.0


class LogLine(msgspec.Struct, frozen=True, tag=True):
    """A log record; `fields` are of plain types, `trace` is a formatted traceback."""

    logger: str
    level: int
    message: str
    fields: dict[str, str | int | float | bool | None]
    trace: str | None = None


class Broken(msgspec.Struct, frozen=True, tag=True):
    """The engine cannot continue, and its process ends."""

    message: str


class Stopped(msgspec.Struct, frozen=True, tag=True):
    """The last message of an engine that was asked to stop."""


Up = Loading | Ready | Happened | Heartbeat | LogLine | Broken | Stopped

encode: Callable[[Down | Up], bytes] = msgspec.msgpack.Encoder().encode
decode_down: Callable[[bytes | memoryview], Down] = msgspec.msgpack.Decoder(Down).decode
"""Return the front's message in these bytes. Raises msgspec.DecodeError."""
decode_up: Callable[[bytes | memoryview], Up] = msgspec.msgpack.Decoder(Up).decode
"""Return the engine's message in these bytes. Raises msgspec.DecodeError."""
