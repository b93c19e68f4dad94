"""A bare client of vLLM-Omni's speech socket: frames as they go over the wire."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import websockets

from tests.server.talking import Talker

PATH = "/v1/audio/speech/stream"
STREAM = {"stream_audio": True, "response_format": "pcm"}


class Client(Talker):
    async def config(self, **fields: Any) -> None:
        await self.send("session.config", **fields)

    async def text(self, *texts: str) -> None:
        for text in texts:
            await self.send("input.text", text=text)

    async def done(self) -> None:
        await self.send("input.done")

    async def refused(self) -> str:
        """The message of the next error."""
        message: str = (await self.until("error"))[-1]["message"]
        return message


@contextlib.asynccontextmanager
async def omni(server: Any, **options: Any) -> AsyncIterator[Client]:
    url = f"ws://127.0.0.1:{server.port}{PATH}"
    async with websockets.connect(url, compression=None, **options) as socket:
        yield Client(socket)
