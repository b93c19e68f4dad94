"""A bare client of Deepgram's sockets: messages as they go over the wire."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import websockets

from tests.server.talking import Talker

LIVEKIT = "?encoding=linear16&model=flux-alexis-en&sample_rate=24000&mip_opt_out=false"

Seen = list[dict[str, Any] | bytes]


class Client(Talker):
    """`greeting` is the server's first message."""

    def __init__(self, socket: websockets.ClientConnection, greeting: dict[str, Any]) -> None:
        super().__init__(socket)
        self.greeting = greeting

    async def say(self, *texts: str, flush: bool = True) -> None:
        for text in texts:
            await self.send("Speak", text=text)
        if flush:
            await self.send("Flush")

    async def until(self, type: str) -> Seen:
        """Everything up to the first message of this type; `sound` is a type."""
        return await self.up_to(lambda found: type_of(found) == type)

    async def refused(self) -> tuple[dict[str, Any], int, str]:
        """The `Error`, and the code and reason of the close that follows it."""
        error = (await self.until("Error"))[-1]
        assert isinstance(error, dict)
        try:
            while True:
                await self.socket.recv()
        except websockets.ConnectionClosed:
            pass
        assert self.socket.close_code is not None
        return error, self.socket.close_code, self.socket.close_reason or ""


def type_of(message: dict[str, Any] | bytes) -> str:
    return "sound" if isinstance(message, bytes) else message["type"]


def types_of(seen: Seen) -> list[str]:
    """The types in order, sound that follows sound as one."""
    types = [type_of(message) for message in seen]
    return [one for at, one in enumerate(types) if one != "sound" or types[at - 1 : at] != [one]]


@contextlib.asynccontextmanager
async def connected(
    server: Any, path: str, query: str = "", **options: Any
) -> AsyncIterator[Client]:
    """A socket, past its greeting."""
    url = f"ws://127.0.0.1:{server.port}{path}{query}"
    async with websockets.connect(url, compression=None, **options) as socket:
        yield Client(socket, json.loads(await socket.recv()))


def aura(server: Any, query: str = "", **options: Any) -> Any:
    return connected(server, "/v1/speak", query, **options)


def flux(server: Any, query: str = LIVEKIT, **options: Any) -> Any:
    return connected(server, "/v2/speak", query, **options)
