"""A bare client of ElevenLabs' API: messages as they go over the wire."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import websockets

FRAME = 3_840  # bytes of speech for a token of one byte
TENTH = bytes(4_800)


class Client:
    def __init__(self, socket: websockets.ClientConnection) -> None:
        self.socket = socket

    async def send(self, **message: Any) -> None:
        await self.socket.send(json.dumps(message))

    async def next(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await self.socket.recv())
        return message

    async def until(self, key: str, context_id: str | None = None) -> list[dict[str, Any]]:
        """Everything up to the first message in which this key is true (of this context)."""
        seen: list[dict[str, Any]] = []
        while True:
            seen.append(await self.next())
            if seen[-1].get(key) and context_id in (None, seen[-1].get("contextId")):
                return seen

    async def rest(self) -> list[dict[str, Any]]:
        """Everything until the socket is closed; `self.socket.close_code` says how."""
        seen = []
        with contextlib.suppress(websockets.ConnectionClosed):
            while True:
                seen.append(await self.next())
        return seen


@contextlib.asynccontextmanager
async def eleven(
    server: Any, query: str = "", *, voice: str = "alto", multi: bool = True, **options: Any
) -> AsyncIterator[Client]:
    path = f"/v1/text-to-speech/{voice}/{'multi-' if multi else ''}stream-input"
    url = f"ws://127.0.0.1:{server.port}{path}?model_id=m&output_format=pcm_24000{query}"
    async with websockets.connect(url, compression=None, **options) as socket:
        yield Client(socket)


def sound_of(messages: list[dict[str, Any]], context_id: str | None = None) -> bytes:
    return b"".join(
        base64.b64decode(message["audio"])
        for message in messages
        if message.get("audio") and context_id in (None, message.get("contextId"))
    )


def alignments(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [message["alignment"] for message in messages if message.get("alignment")]
