"""Targets: what Prometheus scrapes, the servers of a fleet that come and go.

The answer is that of an endpoint for Prometheus' HTTP service discovery (`http_sd_configs`), to any
request. Only Prometheus asks, so it gets a port of its own, which no client reaches.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterable

from realtime_tts.errors import ConfigError
from realtime_tts.fleet.members import Member

_REQUEST_SECONDS = 5.0
_PEERS_FAULT = OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError


def targets(members: Iterable[Member]) -> str:
    """Return the servers as Prometheus wants them."""
    return json.dumps([{"targets": [one.authority for one in members]}])


@contextlib.asynccontextmanager
async def listing(bind: str | None, members: Callable[[], Iterable[Member]]) -> AsyncIterator[None]:
    """Within this block, list the members of the moment at `bind`, `ADDRESS:PORT` or `*:PORT`;
    None: nowhere. Raises ConfigError if that cannot be."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(*_PEERS_FAULT):
            async with asyncio.timeout(_REQUEST_SECONDS):
                while (await reader.readuntil()).strip():
                    pass
                body = targets(members())
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
                    b"content-length: %d\r\n\r\n%s" % (len(body), body.encode())
                )
                await writer.drain()
        writer.close()

    if bind is None:
        yield
        return
    host, _, port = bind.rpartition(":")
    address = None if host == "*" else host.strip("[]")
    if address == "" or not port.isdecimal():
        raise ConfigError(f"--targets-bind is ADDRESS:PORT, such as 10.0.0.1:8002; got {bind!r}")
    try:
        server = await asyncio.start_server(answer, address, int(port))
    except UnicodeError:  # Python writes a name as IDNA before it asks for its addresses
        raise ConfigError(f"--targets-bind: {address} is no name of a host") from None
    except (OSError, OverflowError) as error:
        raise ConfigError(f"--targets-bind: cannot listen on {bind}: {error}") from None
    try:
        yield
    finally:
        server.close()
