"""Well-behaved clients over a WebSocket: JSON out, JSON and binary frames in."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
import websockets

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
"""What a browser calls itself."""


class Listener:
    """Whatever a message looks like."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket

    async def next(self) -> Any:
        """The next message: a dict, or the bytes of a binary frame."""
        raw = await self.socket.recv()
        return raw if isinstance(raw, bytes) else json.loads(raw)

    async def up_to(self, last: Callable[[Any], Any], *, past_errors: bool = False) -> list[Any]:
        """Everything up to the first message for which `last` is true, that one included. An error
        that nobody expects is not waited past: what comes after it may never come."""
        seen: list[Any] = []
        while not seen or not last(seen[-1]):
            assert past_errors or not seen or not self.is_error(seen[-1]), seen[-1]
            seen.append(await self.next())
        return seen

    def is_error(self, message: Any) -> bool:
        """Whether it says that something went wrong."""
        raise NotImplementedError

    async def rest(self) -> list[Any]:
        """Everything until the server closes; `self.socket.close_code` says how."""
        seen: list[Any] = []
        with contextlib.suppress(websockets.ConnectionClosed):
            while True:
                seen.append(await self.next())
        return seen


class Talker(Listener):
    """Where a message has a `type`."""

    def is_error(self, message: Any) -> bool:
        """That of a turn is none: `turn.done` follows it."""
        if not isinstance(message, dict) or "turn_id" in message:
            return False
        return message["type"] in ("error", "Error")

    async def send(self, type: str, **fields: Any) -> Any:
        await self.socket.send(json.dumps({"type": type, **fields}))

    async def until(self, type: str) -> list[Any]:
        """Everything up to the first message of this type, that one included."""
        return await self.up_to(lambda found: isinstance(found, dict) and found["type"] == type)


class KeyTalker(Listener):
    """Where the keys of a message say what it is."""

    def is_error(self, message: Any) -> bool:
        return message.get("type") == "error" or "error" in message

    async def send(self, **message: Any) -> None:
        await self.socket.send(json.dumps(message))


async def denied(connecting: contextlib.AbstractAsyncContextManager[Any]) -> Any:
    """The answer in place of the upgrade."""
    with pytest.raises(websockets.InvalidStatus) as caught:
        async with connecting:
            pass
    return caught.value.response


def of_type(messages: list[Any], type: str) -> list[dict[str, Any]]:
    """Those of this type."""
    return [m for m in messages if isinstance(m, dict) and m["type"] == type]


def packets_of(messages: list[Any]) -> list[bytes]:
    """The binary frames."""
    return [message for message in messages if isinstance(message, bytes)]


def sound_of(messages: list[Any]) -> bytes:
    """What all binary frames hold."""
    return b"".join(packets_of(messages))
