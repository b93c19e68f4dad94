"""Objects through a pipe between the load generator and its client processes.

Pickles, each behind its length. Both ends are this program: nothing of a stranger is read here.
"""

from __future__ import annotations

import asyncio
import pickle
import struct
from dataclasses import dataclass
from typing import Any

from realtime_tts.bench.meeting import Share
from realtime_tts.bench.observed import Observed
from realtime_tts.bench.settings import BenchSettings, Level

_LENGTH = struct.Struct("!Q")


@dataclass(frozen=True, slots=True)
class Job:
    """To a client process: carry out your share of a pass."""

    level: Level
    settings: BenchSettings
    share: Share
    paced: bool


@dataclass(frozen=True, slots=True)
class Here:
    """From a client process: all of mine wait to go on."""


@dataclass(frozen=True, slots=True)
class GoOn:
    """To all client processes, when every one is `Here`: go on at this time of `clock`."""

    at: float


@dataclass(frozen=True, slots=True)
class Done:
    """From a client process: so many turns."""

    what: str
    turns: int


@dataclass(frozen=True, slots=True)
class Failed:
    """From a client process: the pass cannot go on."""

    message: str


Answer = Here | Done | Failed | Observed


def packed(message: Any) -> bytes:
    """As it goes through the pipe."""
    data = pickle.dumps(message)
    return _LENGTH.pack(len(data)) + data


async def read(reader: asyncio.StreamReader) -> Any:
    """The next object. Raises IncompleteReadError at the end."""
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return pickle.loads(await reader.readexactly(length))
