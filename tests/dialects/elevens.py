"""A bare client of ElevenLabs' API: messages as they go over the wire."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import websockets

from tests.server.talking import KeyTalker


class Client(KeyTalker):
    async def until(self, key: str, context_id: str | None = None) -> list[dict[str, Any]]:
        """Everything up to the first message in which this key is true (of this context)."""
        return await self.up_to(
            lambda found: found.get(key) and context_id in (None, found.get("contextId"))
        )


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
