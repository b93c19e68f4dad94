"""A wire to the server that can be cut, and can hold back what the server says."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from math import inf


class Wire:
    """A TCP relay to a server. `cut` breaks what goes through it; `connections` counts; while
    `open` is not set, nothing comes from the server."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._writers: set[asyncio.StreamWriter] = set()
        self.connections = 0
        self.open = asyncio.Event()
        self.open.set()
        self.refusing = 0
        """How many of the next connections are closed at once."""
        self.cut_after = inf
        """It cuts itself, once, when so many bytes have come from the server."""
        self._came = 0
        self.url = ""

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.refusing:
            self.refusing -= 1
            writer.transport.abort()
            return
        there = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, there[1]}
        await asyncio.gather(_pour(reader, there[1]), self._pour_back(there[0], writer))
        self._writers -= {writer, there[1]}

    async def _pour_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def pass_on(data: bytes) -> None:
            await self.open.wait()
            self._came += len(data)
            if self._came >= self.cut_after:
                self.cut_after = inf
                self.cut()

        await _pour(reader, writer, pass_on)


async def _pour(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    before: Callable[[bytes], Awaitable[None]] | None = None,
) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            if before is not None:
                await before(data)
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def wire_to(url: str) -> AsyncIterator[Wire]:
    """A wire to the server at `url`."""
    wire = Wire(int(url.rsplit(":", 1)[1]))
    listening = await asyncio.start_server(wire.relay, "127.0.0.1", 0)
    wire.url = f"ws://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield wire
    finally:
        wire.cut()
        listening.close()
