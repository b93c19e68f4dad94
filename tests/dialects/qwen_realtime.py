"""A bare client of DashScope's Qwen-TTS-Realtime: events as they go over the wire."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import websockets

from tests.server.talking import Talker

PATH = "/api-ws/v1/realtime"
OPENING = ["response.created", "response.output_item.added", "response.content_part.added"]
CLOSING = [
    "response.audio.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.done",
]


class Client(Talker):
    def __init__(self, socket: websockets.ClientConnection) -> None:
        super().__init__(socket)
        self.created: dict[str, Any] = {}
        self._ids = itertools.count(1)

    async def send(self, type: str, **fields: Any) -> str:
        """Gives the event's id."""
        event_id = f"event_{next(self._ids)}"
        await self.socket.send(json.dumps({"event_id": event_id, "type": type, **fields}))
        return event_id

    async def update(self, **session: Any) -> dict[str, Any]:
        """The session, after an update that must be taken."""
        await self.send("session.update", session=session)
        updated = (await self.until("session.updated"))[-1]["session"]
        assert isinstance(updated, dict)
        return updated

    async def append(self, *texts: str) -> None:
        for text in texts:
            await self.send("input_text_buffer.append", text=text)

    async def commit(self) -> None:
        await self.send("input_text_buffer.commit")

    async def say(self, *texts: str) -> None:
        """Appends them and commits."""
        await self.append(*texts)
        await self.commit()

    async def response(self) -> dict[str, Any]:
        """The next response that is done."""
        (done,) = responses(await self.until("response.done"))
        return done

    async def refused(self) -> dict[str, Any]:
        """The next error."""
        error = (await self.until("error"))[-1]["error"]
        assert isinstance(error, dict) and error["type"] and error["code"]
        return error


@contextlib.asynccontextmanager
async def qwen_realtime(
    server: Any, model: str = "qwen3-tts-flash-realtime", **options: Any
) -> AsyncIterator[Client]:
    url = f"ws://127.0.0.1:{server.port}{PATH}?model={model}"
    async with websockets.connect(url, compression=None, **options) as socket:
        client = Client(socket)
        client.created = await client.next()
        assert client.created["type"] == "session.created"
        yield client


def types(events: list[dict[str, Any]]) -> list[str]:
    """The types, a run of deltas as one."""
    return [type for type, _ in itertools.groupby(event["type"] for event in events)]


def responses(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that are done, in order."""
    return [event["response"] for event in events if event["type"] == "response.done"]


def sound_of(events: list[dict[str, Any]]) -> bytes:
    return b"".join(
        base64.b64decode(event["delta"])
        for event in events
        if event["type"] == "response.audio.delta"
    )
