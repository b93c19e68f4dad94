"""A bare client of Cartesia's API: messages as they go over the wire."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import websockets

from tests.server.talking import KeyTalker

RAW = {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24_000}
VOICE = {"mode": "id", "id": "alto"}


class Client(KeyTalker):
    async def say(self, transcript: str, context_id: str | None = "one", **more: Any) -> None:
        await self.send(
            model_id="sonic-3",
            transcript=transcript,
            voice=VOICE,
            output_format=RAW,
            context_id=context_id,
            language="en",
            **more,
        )

    async def send(self, **message: Any) -> None:
        # SDKs write `continue_`; their keys that are not set come as null.
        message = {"continue" if name == "continue_" else name: x for name, x in message.items()}
        await super().send(**message)

    async def until(self, type: str, context_id: str | None = None) -> list[dict[str, Any]]:
        """Everything up to the first message of this type (and context)."""
        return await self.up_to(
            lambda found: found["type"] == type and context_id in (None, found["context_id"])
        )


@contextlib.asynccontextmanager
async def cartesian(server: Any, query: str = "", **options: Any) -> AsyncIterator[Client]:
    url = f"ws://127.0.0.1:{server.port}/tts/websocket?cartesia_version=2026-08-14{query}"
    async with websockets.connect(url, compression=None, **options) as socket:
        yield Client(socket)


def sound_of(messages: list[dict[str, Any]], context_id: str | None = None) -> bytes:
    return b"".join(
        base64.b64decode(message["data"])
        for message in messages
        if message["type"] == "chunk" and context_id in (None, message["context_id"])
    )
