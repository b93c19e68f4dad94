"""HAProxy's agent check: on a port of its own, each connection gets one line about the load.

The line is `drain` while the server is shutting down, `down` while its engine takes no turns, else
`ready up P%`. HAProxy gives a server P hundredths of the weight in its configuration. P is the
number of sessions that could come and speak now: with `weight 100` on every server, the weight of a
server is its free capacity, and servers of unequal size share the sessions in proportion. A full
server has the weight 0: it gets no new session. (HAProxy's configuration manual, `agent-check`.)
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

from realtime_tts.server.load import Load

_MOST_PERCENT = 25_600
"""The largest value that HAProxy accepts."""


def agent_line(load: Load) -> str:
    """Return the line for HAProxy, without its end."""
    if load.draining:
        return "drain"
    if not load.ready:
        return "down"
    return f"ready up {min(load.free_sessions, _MOST_PERCENT)}%"


@contextlib.asynccontextmanager
async def answering(
    listeners: Sequence[socket.socket], load: Callable[[], Load]
) -> AsyncIterator[None]:
    """Answer connections to the bound `listeners` within this block; close them at its end."""
    loop = asyncio.get_running_loop()
    servers = [
        await loop.create_server(partial(_Answer, load), sock=listener) for listener in listeners
    ]
    try:
        yield
    finally:
        for server in servers:
            server.close()


class _Answer(asyncio.Protocol):
    """One connection, which gets the line and is closed."""

    def __init__(self, load: Callable[[], Load]) -> None:
        self._load = load

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(agent_line(self._load()).encode() + b"\n")
        transport.close()
