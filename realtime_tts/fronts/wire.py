"""What a server's parent process and one of its fronts say to each other, through the pipes of
child_process.py: msgpack, a struct a message. Accepted sockets come another way (acceptor.py)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from realtime_tts.config import ServerConfig
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.fronts.merged_metrics import Family
from realtime_tts.metrics import Page


@dataclass(frozen=True, slots=True)
class FrontSpec:
    """All a fresh interpreter needs to become a front; it is pickled on its way there.

    `engines`: as `links.shared_links` takes them. `folder`: a private one that all fronts share.
    `occupancy`, `sockets`: open files. `number`: which of `fronts` it is, from one on. `serial`:
    its number at the engines, which no front before it had.
    """

    config: ServerConfig
    engines: tuple[EngineConfig, ...]
    fronts: int
    folder: Path
    occupancy: int
    sockets: int = -1
    number: int = 0
    serial: int = 0

    def of(self, number: int, serial: int) -> FrontSpec:
        """The same for this front."""
        return replace(self, number=number, serial=serial)


# Down: parent -> front ----------------------------------------------------------------------


class EngineFound(msgspec.Struct, frozen=True, tag=True):
    """A process of this engine has been started; its sockets are in `folder`."""

    engine: int
    folder: str


class EngineLost(msgspec.Struct, frozen=True, tag=True):
    """It has ended; with `failure` there will be no other one."""

    engine: int
    failure: str | None


class Drain(msgspec.Struct, frozen=True, tag=True):
    """The first one drains, the second one ends."""


class FamiliesWanted(msgspec.Struct, frozen=True, tag=True):
    """`Families` is to answer, with this number."""

    ask: int


class PageMade(msgspec.Struct, frozen=True, tag=True):
    """The answer to `PageWanted`."""

    ask: int
    page: Page


class Prepare(msgspec.Struct, frozen=True, tag=True):
    """Get ready for a pickled ServerConfig; `Prepared` is to answer, with this number."""

    ask: int
    config: bytes


class TakeOver(msgspec.Struct, frozen=True, tag=True):
    """Take over what was prepared last; `TakenOver` is to answer, with this number."""

    ask: int


Down = EngineFound | EngineLost | Drain | FamiliesWanted | PageMade | Prepare | TakeOver

# Up: front -> parent ------------------------------------------------------------------------


class Listening(msgspec.Struct, frozen=True, tag=True):
    """Sockets are welcome."""


class Ready(msgspec.Struct, frozen=True, tag=True):
    """So are turns, for the first time."""


class PageWanted(msgspec.Struct, frozen=True, tag=True):
    """Somebody asks this front for the metrics of all, and accepts these media types."""

    ask: int
    accept: str


class Families(msgspec.Struct, frozen=True, tag=True):
    """The front's own metrics."""

    ask: int
    families: list[Family]


class Prepared(msgspec.Struct, frozen=True, tag=True):
    """The settings can be taken over, or `why` not."""

    ask: int
    why: str | None


class TakenOver(msgspec.Struct, frozen=True, tag=True):
    """They have been."""

    ask: int


Up = Listening | Ready | PageWanted | Families | Prepared | TakenOver

_encoder = msgspec.msgpack.Encoder()
_down_decoder = msgspec.msgpack.Decoder(Down)
_up_decoder = msgspec.msgpack.Decoder(Up)


def encode(message: Down | Up) -> bytes:
    """The message as bytes."""
    return _encoder.encode(message)


def decode_down(data: bytes) -> Down:
    """The parent's message in `data`. Raises msgspec.DecodeError."""
    found: Down = _down_decoder.decode(data)
    return found


def decode_up(data: bytes) -> Up:
    """The front's message in `data`. Raises msgspec.DecodeError."""
    found: Up = _up_decoder.decode(data)
    return found
