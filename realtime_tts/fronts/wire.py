"""Messages between a server's parent process and its fronts, through the pipes of
child_process.py: msgpack, one struct per message. Sockets are sent another way (acceptor.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from realtime_tts.config import ServerConfig
from realtime_tts.engine.interface import EngineInfo
from realtime_tts.engine.settings import EngineConfig
from realtime_tts.fronts.merged_metrics import Family
from realtime_tts.metrics import Page


@dataclass(frozen=True, slots=True)
class FrontSpec:
    """Everything that a new process needs to become a front. It is sent to the process pickled.

    `engines`: settings of the engines. `folder`: a private folder that all fronts share.
    `occupancy`, `sockets`: file descriptors. `number`: which of the `fronts` it is, from 1 on.
    `serial`: its number at the engines, which no earlier front has had. `infos`: what each engine
    can do, once all of them have been ready.
    """

    config: ServerConfig
    engines: tuple[EngineConfig, ...]
    fronts: int
    folder: Path
    occupancy: int
    sockets: int = -1
    number: int = 0
    serial: int = 0
    infos: tuple[EngineInfo, ...] = ()


# Down: parent -> front ----------------------------------------------------------------------


class EngineFound(msgspec.Struct, frozen=True, tag=True):
    """A process of engine number `engine` has been started; its sockets are in `folder`."""

    engine: int
    folder: str


class EngineLost(msgspec.Struct, frozen=True, tag=True):
    """The process of engine number `engine` has ended. With a `failure`, it is not restarted."""

    engine: int
    failure: str | None


class Drain(msgspec.Struct, frozen=True, tag=True):
    """The first of these messages drains the front, the second one ends it."""


class FamiliesWanted(msgspec.Struct, frozen=True, tag=True):
    """Send the front's metrics: a `Families` with the number `ask`."""

    ask: int


class PageMade(msgspec.Struct, frozen=True, tag=True):
    """The page that a `PageWanted` with the number `ask` has requested."""

    ask: int
    page: Page


class Prepare(msgspec.Struct, frozen=True, tag=True):
    """Get ready to apply a pickled ServerConfig, and answer with a `Prepared` numbered `ask`."""

    ask: int
    config: bytes


class TakeOver(msgspec.Struct, frozen=True, tag=True):
    """Apply the settings prepared last, and answer with a `TakenOver` numbered `ask`."""

    ask: int


Down = EngineFound | EngineLost | Drain | FamiliesWanted | PageMade | Prepare | TakeOver

# Up: front -> parent ------------------------------------------------------------------------


class Listening(msgspec.Struct, frozen=True, tag=True):
    """The front can be handed sockets from now on."""


class Stopping(msgspec.Struct, frozen=True, tag=True):
    """The front should be handed no more sockets."""


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The front accepts turns for the first time."""


class PageWanted(msgspec.Struct, frozen=True, tag=True):
    """This front is being scraped: send the metrics of all fronts, in a media type of `accept`."""

    ask: int
    accept: str


class Families(msgspec.Struct, frozen=True, tag=True):
    """The front's own metrics, in answer to a `FamiliesWanted`."""

    ask: int
    families: list[Family]


class Prepared(msgspec.Struct, frozen=True, tag=True):
    """The settings can be applied; if not, `why` is the reason."""

    ask: int
    why: str | None


class TakenOver(msgspec.Struct, frozen=True, tag=True):
    """The settings have been applied."""

    ask: int


Up = Listening | Stopping | Ready | PageWanted | Families | Prepared | TakenOver

encode: Callable[[Down | Up], bytes] = msgspec.msgpack.Encoder().encode
decode_down: Callable[[bytes], Down] = msgspec.msgpack.Decoder(Down).decode
"""Return the parent's message in these bytes. Raises msgspec.DecodeError."""
decode_up: Callable[[bytes], Up] = msgspec.msgpack.Decoder(Up).decode
"""Return the front's message in these bytes. Raises msgspec.DecodeError."""
