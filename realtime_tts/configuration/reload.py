"""Applies new settings in a process of a running server: all its parts do, or none. First all
prepare, which may fail; a server with several fronts waits until every front has."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from realtime_tts.config import ServerConfig


class Reloadable(Protocol):
    """A part of a running server that can apply new settings. Give it to `Reloads.add`."""

    def prepare(self, config: ServerConfig) -> Callable[[], None]:
        """Return what applies `config`: it is called on the event loop, and cannot fail.

        Called in a thread, so it may read files and compute. Changes nothing itself. Raises
        ConfigError if the settings, or the files that they name, cannot be used.
        """


class Reloads:
    """The parts of one server process that can apply new settings."""

    def __init__(self) -> None:
        self._parts: list[Reloadable] = [LogLevel()]
        self._preparing = asyncio.Lock()

    def add(self, part: Reloadable) -> None:
        """Add a part, which gets new settings from now on."""
        self._parts.append(part)

    async def prepare(self, config: ServerConfig) -> Callable[[], None]:
        """Return what applies `config` in all parts, on the event loop; nothing changes before, and
        then nothing can fail. Raises ConfigError if a part cannot apply it."""
        async with self._preparing:  # the settings that come last are those that hold
            ready = await asyncio.to_thread(lambda: [part.prepare(config) for part in self._parts])

        def take_over() -> None:
            for part in ready:
                part()

        return take_over

    async def apply(self, config: ServerConfig) -> None:
        """Apply `config` in all parts. Raises ConfigError, and then none has changed."""
        (await self.prepare(config))()


class LogLevel:
    """The level of the process's log, as a part that is reloaded."""

    def prepare(self, config: ServerConfig) -> Callable[[], None]:
        """See `Reloadable`."""
        return lambda: logging.getLogger().setLevel(config.log_level.upper())
