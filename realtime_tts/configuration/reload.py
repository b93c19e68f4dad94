"""New settings for a process of a running server: all its parts take them over, or none does. First
all get ready, which may fail; a server with several fronts waits for that of every front."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from realtime_tts.config import ServerConfig


class Reloadable(Protocol):
    """A part of a running server that can take new settings over. Give it to `Reloads.add`."""

    def prepare(self, config: ServerConfig) -> Callable[[], None]:
        """What takes `config` over: it is called on the event loop, and cannot fail.

        Called in a thread, so it may read files and compute. Changes nothing itself. Raises
        ConfigError if the settings, or the files that they name, cannot be used.
        """


class Reloads:
    """The parts of one server process that can take new settings over."""

    def __init__(self) -> None:
        self._parts: list[Reloadable] = [LogLevel()]
        self._preparing = asyncio.Lock()

    def add(self, part: Reloadable) -> None:
        """From now on it gets new settings, too."""
        self._parts.append(part)

    async def prepare(self, config: ServerConfig) -> Callable[[], None]:
        """What has all parts take `config` over, on the event loop; nothing has changed before, and
        then nothing can fail. Raises ConfigError if a part cannot."""
        async with self._preparing:  # what comes last is what holds
            ready = await asyncio.to_thread(lambda: [part.prepare(config) for part in self._parts])

        def take_over() -> None:
            for part in ready:
                part()

        return take_over

    async def apply(self, config: ServerConfig) -> None:
        """Have all parts take `config` over. Raises ConfigError, and then none has."""
        (await self.prepare(config))()


class LogLevel:
    """The level of the process's log."""

    def prepare(self, config: ServerConfig) -> Callable[[], None]:
        """See `Reloadable`."""
        return lambda: logging.getLogger().setLevel(config.log_level.upper())
