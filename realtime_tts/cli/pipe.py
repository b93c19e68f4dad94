"""A named pipe as the output of `realtime-tts say`."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
from pathlib import Path

_LOOK_AGAIN_SECONDS = 0.05


class PipeSink:
    """Bytes into a named pipe, as they come; `header` goes before the first.

    Its reader may come late, read slowly, or never come. Opening and writing wait for it without
    blocking the event loop, so that `stop` always finds somebody to listen.
    """

    def __init__(self, path: Path, header: bytes = b"") -> None:
        self.name = str(path)
        self._path = path
        self._header = header
        self._descriptor: int | None = None
        self._writing = False
        self._stopped = False
        self._wake = asyncio.Event()  # there is room in the pipe, or nothing to wait for any more

    async def write(self, packet: bytes) -> None:
        """Raises OSError if the pipe cannot be opened, or its reader has left."""
        left, self._header = memoryview(self._header + packet), b""
        self._writing = True
        try:
            while left and not self._stopped:
                left = left[await self._write_some(left) :]
        finally:
            self._writing = False
            if self._stopped:
                self._close()

    async def finish(self) -> None:
        self._close()

    def stop(self) -> None:
        """Idempotent."""
        self._stopped = True
        self._wake.set()
        if not self._writing:
            self._close()

    @property
    def played_seconds(self) -> float | None:
        return None

    async def _write_some(self, data: memoryview) -> int:
        """Write what there is room for, or wait for room. Gives the bytes written."""
        if self._descriptor is None:
            try:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:  # what it says while nobody reads
                    raise
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), _LOOK_AGAIN_SECONDS)
                return 0
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            await self._room(self._descriptor)
            return 0

    async def _room(self, descriptor: int) -> None:
        loop = asyncio.get_running_loop()
        self._wake.clear()
        loop.add_writer(descriptor, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            loop.remove_writer(descriptor)

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
