"""Well-behaved clients over a WebSocket: JSON out, JSON and binary frames in."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import websockets


class Listener:
    """Whatever a message looks like."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket

    async def next(self) -> Any:
        """The next message: a dict, or the bytes of a binary frame."""
        raw = await self.socket.recv()
        return raw if isinstance(raw, bytes) else json.loads(raw)

    async def up_to(self, last: Callable[[Any], Any]) -> list[Any]:
        """Everything up to the first message for which `last` is true, that one included."""
        seen: list[Any] = []
        while not seen or not last(seen[-1]):
            seen.append(await self.next())
        return seen

    async def rest(self) -> list[Any]:
        """Everything until the server closes; `self.socket.close_code` says how."""
        seen: list[Any] = []
        with contextlib.suppress(websockets.ConnectionClosed):
            while True:
                seen.append(await self.next())
        return seen


class Talker(Listener):
    """Where a message has a `type`."""

    async def send(self, type: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": type, **fields}))

    async def until(self, type: str) -> list[Any]:
        """Everything up to the first message of this type, that one included."""
        return await self.up_to(lambda found: isinstance(found, dict) and found["type"] == type)


class KeyTalker(Listener):
    """Where the keys of a message say what it is."""

    async def send(self, **message: Any) -> None:
        await self.socket.send(json.dumps(message))
