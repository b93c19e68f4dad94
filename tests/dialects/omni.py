"""A bare client of vLLM-Omni's speech socket: frames as they go over the wire."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import websockets

PATH = "/v1/audio/speech/stream"
FRAME = 3_840  # bytes of speech for a token of one byte
TENTH = bytes(4_800)
STREAM = {"stream_audio": True, "response_format": "pcm"}


class Client:
    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket

    async def send(self, type: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": type, **fields}))

    async def config(self, **fields: Any) -> None:
        await self.send("session.config", **fields)

    async def text(self, *texts: str) -> None:
        for text in texts:
            await self.send("input.text", text=text)

    async def done(self) -> None:
        await self.send("input.done")

    async def next(self) -> Any:
        """The next message: a dict, or the bytes of a binary frame."""
        raw = await self.socket.recv()
        return raw if isinstance(raw, bytes) else json.loads(raw)

    async def until(self, type: str) -> list[Any]:
        """Everything up to the first message of this type."""
        seen: list[Any] = []
        while not seen or not isinstance(seen[-1], dict) or seen[-1]["type"] != type:
            seen.append(await self.next())
        return seen

    async def refused(self) -> str:
        """The message of the next error."""
        message: str = (await self.until("error"))[-1]["message"]
        return message

    async def rest(self) -> list[Any]:
        """Everything until the server closes."""
        seen: list[Any] = []
        with contextlib.suppress(websockets.ConnectionClosed):
            while True:
                seen.append(await self.next())
        return seen


@contextlib.asynccontextmanager
async def omni(server: Any, **options: Any) -> AsyncIterator[Client]:
    url = f"ws://127.0.0.1:{server.port}{PATH}"
    async with websockets.connect(url, compression=None, **options) as socket:
        yield Client(socket)


def sound_of(seen: list[Any]) -> bytes:
    return b"".join(message for message in seen if isinstance(message, bytes))


def told(seen: list[Any], type: str) -> list[dict[str, Any]]:
    return [m for m in seen if isinstance(m, dict) and m["type"] == type]
