"""The smallest dialect there can be, to test what all of them share."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import websockets
from msgspec.structs import replace
from starlette.routing import WebSocketRoute

from realtime_tts.dialects.api import Api, Refusal
from realtime_tts.dialects.catalogue import our_format
from realtime_tts.dialects.context import SpeechContext
from realtime_tts.dialects.fields import text_of
from realtime_tts.dialects.socket import SpeechSocket
from realtime_tts.dialects.timing import words_of
from realtime_tts.engine.interface import EngineInfo
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.session_settings import session_defaults
from realtime_tts.server.track import Segment
from realtime_tts.server.writer import Messages
from tests.server.talking import KeyTalker

PATH = "/plain"


class Plain(Api):
    name = "plain"
    permanent = 503

    def body(self, refusal: Refusal, request_id: str) -> dict[str, Any]:
        return {"code": refusal.code, "message": refusal.message}


class PlainSocket(SpeechSocket):
    api = Plain()
    max_contexts = 50
    hold_seconds = 60.0

    def received(self, message: dict[str, Any]) -> None:
        if self.needs_key:
            self.present_key(message.get("key"))
            return
        if message.get("finish"):
            self.finish()
            return
        id = message.get("id", "one")
        if message.get("cancel"):
            self.cancel(id)
            self.say(json.dumps({"id": id, "cancelled": True}))
            return
        context = self.contexts.get(id)
        if context is None:
            encoding = message.get("encoding", "pcm_s16le")
            context = self.open_context(
                id,
                self.front.settings(voice=message.get("voice"), audio=our_format(encoding)),
                hold_seconds=message.get("hold"),
                lasting=bool(message.get("lasting")),
                continuous=not message.get("per_segment"),
            )
        if context.ended:
            raise RequestError("it has ended")
        context.feed(text_of(message.get("text", "")))
        if "flush" in message:
            context.cut().tag = message["flush"]
        if message.get("end"):
            context.end()

    def refusal(self, failure: TurnFailure) -> Messages:
        return [json.dumps({"error": failure.code, "message": failure.message})]

    def finished(self) -> Messages:
        return [json.dumps({"finished": True})]

    def segment_started(self, context: SpeechContext, segment: Segment) -> Messages:
        return [json.dumps({"id": context.id, "started": segment.number})]

    def sound(self, context: SpeechContext, segment: Segment, data: bytes) -> Messages:
        return [json.dumps({"id": context.id, "sound": base64.b64encode(data).decode()})]

    def spoken(self, context: SpeechContext, segment: Segment, span: Any) -> Messages:
        return [json.dumps({"id": context.id, "words": words_of(span), "text": span.text})]

    def segment_done(self, context: SpeechContext, segment: Segment) -> Messages:
        return [json.dumps({"id": context.id, "segment": segment.number, "tag": segment.tag})]

    def done(self, context: SpeechContext) -> Messages:
        return [json.dumps({"id": context.id, "done": True})]

    def failed(self, context: SpeechContext, failure: TurnFailure) -> Messages:
        return [json.dumps({"id": context.id, "error": failure.code})]


class PlainClient(KeyTalker):
    async def until(self, key: str, id: str | None = None) -> list[dict[str, Any]]:
        """Everything up to the first message with this key (of this context)."""
        return await self.up_to(lambda found: key in found and id in (None, found.get("id")))


def sound_of(messages: list[dict[str, Any]], id: str | None = None) -> bytes:
    return b"".join(
        base64.b64decode(message["sound"])
        for message in messages
        if "sound" in message and (id is None or message["id"] == id)
    )


@contextlib.asynccontextmanager
async def plain(server: Any, query: str = "", **options: Any) -> AsyncIterator[PlainClient]:
    """A socket of the plain dialect, which is added to the server's routes."""
    add_route(server)
    url = f"ws://127.0.0.1:{server.port}{PATH}{query}"
    async with websockets.connect(url, compression=None, **options) as socket:
        yield PlainClient(socket)


def add_route(server: Any) -> None:
    front = server.running.front

    async def endpoint(websocket: Any) -> None:
        await PlainSocket.serve(front, websocket)

    routes = server.app_routes()
    if not any(isinstance(one, WebSocketRoute) and one.path == PATH for one in routes):
        routes.insert(0, WebSocketRoute(PATH, endpoint))


def front_of(info: EngineInfo, voices: tuple[str, ...]) -> Any:
    """What a request's parser needs of a `Front`."""

    def settings(*, longest_lead: bool = False, **chosen: Any) -> SessionSettings:
        given = {name: value for name, value in chosen.items() if value is not None}
        return replace(session_defaults(info, 3.0), **given)

    return SimpleNamespace(info=info, voice_names=lambda account: voices, settings=settings)
