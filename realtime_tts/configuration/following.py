"""Reloading: a running server applies new settings on a signal, and when a file that they come from
changes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from realtime_tts.background import cancel
from realtime_tts.config import ServerConfig
from realtime_tts.configuration.stamps import Stamp, stamp
from realtime_tts.errors import ConfigError
from realtime_tts.logs import event
from realtime_tts.signals import at_signal

if TYPE_CHECKING:  # it imports numpy, for which the check of memory limits must not wait
    from realtime_tts.metrics import Metrics

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Fresh:
    """New settings for a server. `changed`: options that will be different. `needs_restart`:
    options that are different in the file, and cannot be reloaded. `accept` must be called when the
    settings have been applied."""

    config: ServerConfig
    changed: list[str]
    needs_restart: list[str]
    accept: Callable[[], None]


class Source(Protocol):
    """The source of the settings of a running server."""

    @property
    def files(self) -> Mapping[Path, Stamp]:
        """The files whose change may change the settings, as they were just before they were read
        the last time."""

    def read(self) -> Fresh:
        """Return what must be applied now; called in a thread. Raises ConfigError."""


Apply = Callable[[ServerConfig], Awaitable[None]]
"""Applies settings in a server, in all its processes or none. Raises ConfigError, and then nothing
has changed."""


class Follower:
    """Watches the files, on the event loop. It looks at them every second, and applies their
    settings once they have not changed for that long: an editor may write a file in several
    pieces."""

    def __init__(self, source: Source, apply: Apply, metrics: Metrics) -> None:
        self._source = source
        self._apply = apply
        self._asked = asyncio.Event()
        self._taken_at, self._succeeded = metrics.show_reloads()
        self._note(True)

    def ask(self) -> None:
        """Apply the settings of the source now."""
        self._asked.set()

    async def run(self) -> None:
        """Watch until cancelled."""
        seen = before = self._source.files
        while True:
            asked = await self._asked_within(_LOOK_SECONDS)
            now = await self._stamps()
            if asked or (now != seen and now == before):
                await self._reload([path for path in now if now[path] != seen.get(path)])
                # It may be other files now.
                seen = {path: now.get(path, read) for path, read in self._source.files.items()}
            before = now

    async def _asked_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._asked.wait()
        asked = self._asked.is_set()
        self._asked.clear()
        return asked

    async def _stamps(self) -> dict[Path, Stamp]:
        """Look at all files, in a thread: one may be on a disk that does not answer."""
        return await asyncio.to_thread(lambda: {path: stamp(path) for path in self._source.files})

    async def _reload(self, files: Iterable[Path]) -> None:
        """Apply the settings, and log it. `files`: those that have changed; a renewed certificate
        changes no option, and its owner wants to know that it is in use."""
        try:
            fresh = await asyncio.to_thread(self._source.read)
            await self._apply(fresh.config)
        except ConfigError as error:
            self._note(False)
            why = str(error).replace("\n", "; ")
            event(log, logging.ERROR, "config.not_reloaded", why=why)
            return
        except Exception:  # a bug of ours; the server goes on as it is
            self._note(False)
            log.exception("config.not_reloaded")
            return
        fresh.accept()
        self._note(True)
        named = {"changed": ", ".join(fresh.changed), "files": ", ".join(map(str, files))}
        event(log, logging.INFO, "config.reloaded", **named)
        if fresh.needs_restart:
            names = ", ".join(fresh.needs_restart)
            event(log, logging.WARNING, "config.needs_restart", options=names)

    def _note(self, success: bool) -> None:
        self._succeeded.set(success)
        if success:
            self._taken_at.set(time.time())


@contextlib.asynccontextmanager
async def following(
    source: Source | None, apply: Apply, metrics: Metrics, drain: Callable[[], None]
) -> AsyncIterator[None]:
    """Reload the settings in this block, at SIGHUP and when the files change. `source` None:
    nothing is reloaded, and signals are left alone.

    `drain` is called by a SIGHUP that means that the terminal has gone.
    """
    if source is None:
        yield
        return
    follower = Follower(source, apply, metrics)
    watched = sys.stderr.isatty()

    def hung_up() -> None:
        if watched and not os.isatty(sys.stderr.fileno()):
            drain()
        else:
            follower.ask()

    task = asyncio.create_task(follower.run(), name="configuration")
    at_signal(signal.SIGHUP, asyncio.get_running_loop(), hung_up)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # what is left is the server's end
        await cancel(task)
