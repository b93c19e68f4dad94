"""What fronts and an engine process say to each other: msgpack structs, each a message of
a stream (stream.py).

One message carries all commands of a round of the event loop down, or all events of an engine step
up. PCM travels as the bytes it is.
"""

from __future__ import annotations

import msgspec

from realtime_tts.engine.interface import EngineInfo
from realtime_tts.engine.link import Command, Event

# Down: front -> engine ----------------------------------------------------------------------


class Commands(msgspec.Struct, frozen=True, tag=True):
    """Commands of one round of a front's event loop, which are to be applied together."""

    commands: list[Command]


class Stop(msgspec.Struct, frozen=True, tag=True):
    """The engine is to end after the step under way, says the parent; `Stopped` answers."""


Down = Commands | Stop

# Up: engine -> front ------------------------------------------------------------------------


class Loading(msgspec.Struct, frozen=True, tag=True):
    """How far loading is: what `Progress` is called with."""

    what: str
    done: int
    total: int


class Ready(msgspec.Struct, frozen=True, tag=True):
    """Loaded and warm: commands are welcome. `capacity` is what warm-up has measured."""

    info: EngineInfo
    capacity: int


class MadeStep(msgspec.Struct, frozen=True, array_like=True):
    """How long a step took, and how many rows of which kind it had, for the front's metrics."""

    seconds: float
    prefills: int
    decodes: int


class Happened(msgspec.Struct, frozen=True, tag=True):
    """All since the last such message: events for turns, steps and guards for the metrics."""

    events: list[Event]
    steps: list[MadeStep] = []
    guards: list[str] = []


class Heartbeat(msgspec.Struct, frozen=True, tag=True):
    """The process is alive; its loop last finished something `age` seconds ago. `others`:
    utterances of other fronts than the one that is told. `busy`: seconds since then, 0 while there
    is nothing to do. `step` and `leaving` as in `EngineStatus`."""

    active: int
    held: int
    queued: int
    capacity: int
    age: float
    others: int = 0
    busy: float = 0.0
    step: float = 0.0
    leaving: bool = False


class LogLine(msgspec.Struct, frozen=True, tag=True):
    """A log record; `fields` are of plain types, `trace` is a formatted traceback."""

    logger: str
    level: int
    message: str
    fields: dict[str, str | int | float | bool | None]
    trace: str | None = None


class Broken(msgspec.Struct, frozen=True, tag=True):
    """The engine cannot go on, and its process ends."""

    message: str


class Stopped(msgspec.Struct, frozen=True, tag=True):
    """The last message of an engine that was told to stop."""


Up = Loading | Ready | Happened | Heartbeat | LogLine | Broken | Stopped

_encoder = msgspec.msgpack.Encoder()
_down_decoder = msgspec.msgpack.Decoder(Down)
_up_decoder = msgspec.msgpack.Decoder(Up)


def encode(message: Down | Up) -> bytes:
    """The message as bytes."""
    return _encoder.encode(message)


def decode_down(data: bytes | memoryview) -> Down:
    """The front's message in `data`. Raises msgspec.DecodeError."""
    found: Down = _down_decoder.decode(data)
    return found


def decode_up(data: bytes | memoryview) -> Up:
    """The engine's message in `data`. Raises msgspec.DecodeError."""
    found: Up = _up_decoder.decode(data)
    return found
