"""Cartesia's API over HTTP: `POST /tts/bytes`, `POST /tts/sse`, `GET /voices` and one of them."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from realtime_tts.audio.encoders import Encoder
from realtime_tts.dialects import cartesia_answer as answer
from realtime_tts.dialects.cartesia_request import Generation, our_voice, parse
from realtime_tts.dialects.http import (
    EVENTS,
    ClientGone,
    Reply,
    answering,
    check_text,
    client_of,
    new_request_id,
    read_object,
    sounds,
    timed_sounds,
)
from realtime_tts.dialects.languages import our_language
from realtime_tts.dialects.models import our_model
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.server.front import Front
from realtime_tts.server.session_settings import session_defaults, wire_limits
from realtime_tts.server.speech import SpeechError, SpeechStream

log = logging.getLogger(__name__)

BYTES_PATH, SSE_PATH, VOICES_PATH = "/tts/bytes", "/tts/sse", "/voices"

_FIRST_PAGED_VERSION = "2025"
_BORN = "1970-01-01T00:00:00Z"


def http_routes(front: Front) -> list[BaseRoute]:
    return [
        Route(BYTES_PATH, SpeechEndpoint(front, events=False)),
        Route(SSE_PATH, SpeechEndpoint(front, events=True)),
        Route(VOICES_PATH, VoicesEndpoint(front)),
        Route(VOICES_PATH + "/{id}", VoicesEndpoint(front)),
    ]


class SpeechEndpoint:
    """`POST /tts/bytes`, or `/tts/sse` if `events`."""

    def __init__(self, front: Front, *, events: bool) -> None:
        self._front = front
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await answer.wrong_method(scope["method"], "POST")(scope, receive, send)
            return
        reply = Reply(scope, receive, send, new_request_id())
        try:
            self._front.admit()
            await self._speak(scope, receive, reply)
        except ClientGone:
            return
        except (RequestError, ProtocolError) as error:
            await _fail(reply, answer.bad_request(error))
        except SpeechError as error:
            await _fail(reply, error.failure)
        except Exception:
            log.exception("cartesia.bug", extra={"fields": {"request": reply.request_id}})
            await _fail(reply, TurnFailure("internal", "a fault of the server", False))

    async def _speak(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        request = await self._read(receive)
        encoder = request.output_format.open()
        try:
            stream = self._open(request, scope, reply.request_id)
        except BaseException:
            encoder.close()
            raise
        async with answering(stream, receive):
            stream.feed(request.transcript)
            stream.end()
            if self._events:
                await reply.send_all(EVENTS, _events(stream, encoder, request))
            else:
                await reply.send_all(encoder.media_type, sounds(stream, encoder))

    async def _read(self, receive: Receive) -> Generation:
        limits = wire_limits(self._front.config, self._front.engine.info)
        request = parse(await read_object(receive, limits))
        check_text("transcript", request.transcript, limits)
        return request

    def _open(self, request: Generation, scope: Scope, request_id: str) -> SpeechStream:
        info, limits = self._front.engine.info, self._front.config.limits
        defaults = session_defaults(info, limits.max_lead_seconds)
        settings = replace(
            defaults,
            model=our_model(request.model_id, info),
            voice=our_voice(request, self._front.voice_names()) or defaults.voice,
            language=our_language(request.language, info),
        )
        return self._front.open_speech(request_id, settings, client_of(scope))


class VoicesEndpoint:
    """`GET /voices`, a page of all, and `GET /voices/{id}`."""

    def __init__(self, front: Front) -> None:
        self._front = front

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        await self._answer(request)(scope, receive, send)

    def _answer(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return answer.wrong_method(request.method, "GET")
        reason = self._front.not_ready()
        if reason is not None:
            return answer.http_error(TurnFailure("not_ready", reason, True, 2_000), "")
        names = list(self._front.voice_names())
        asked = request.path_params.get("id")
        if asked is not None:
            known = {name.lower(): name for name in names}
            if asked.lower() not in known:
                message = (
                    f"there is no voice {asked[:40]!r}; GET {VOICES_PATH} lists those there are"
                )
                body = {"title": "Not found", "message": message, "error_code": "voice_not_found"}
                return JSONResponse({**body, "status_code": 404}, 404)
            return JSONResponse(_voice(known[asked.lower()]))
        query = request.query_params
        if query.get("q"):
            names = [name for name in names if query["q"].lower() in name.lower()]
        return JSONResponse(_page(names, query, _version(request)))


def _version(request: Request) -> str:
    given = request.headers.get("cartesia-version") or request.query_params.get("cartesia_version")
    return given or "9999"


def _page(names: list[str], query: Any, version: str) -> Any:
    if version < _FIRST_PAGED_VERSION:
        return [_voice(name) for name in names]
    after, before = query.get("starting_after"), query.get("ending_before")
    if after in names:
        names = names[names.index(after) + 1 :]
    if before in names:
        names = names[: names.index(before)]
    try:
        limit = min(100, max(1, int(query.get("limit") or 10)))
    except ValueError:
        limit = 10
    page = names[-limit:] if before else names[:limit]
    has_more = len(page) < len(names)
    next_page = page[-1] if has_more and page else None
    return {"data": [_voice(name) for name in page], "has_more": has_more, "next_page": next_page}


def _voice(name: str) -> dict[str, Any]:
    return {
        "id": name, "name": name, "description": "", "tagline": "", "language": "en",
        "locales": [], "created_at": _BORN, "is_owner": True, "is_public": False, "user_id": "",
        "access": "private", "visibility": "all",
    }  # fmt: skip


async def _events(
    stream: SpeechStream, encoder: Encoder, request: Generation
) -> AsyncGenerator[bytes, None]:
    """Server-sent events: chunks, times of words if they were asked for, and `done`."""
    watch = answer.Stopwatch()
    named = {} if request.context_id is None else {"context_id": request.context_id}
    async with aclosing(timed_sounds(stream, encoder)) as pieces:
        async for piece, span in pieces:
            yield _event({**answer.chunk(piece, watch.step_ms()), **named}) if piece else b""
            if request.add_timestamps and span is not None and span.text.strip():
                yield _event({**answer.timestamps(span), **named})
    yield _event({**answer.done(stream.reason), **named})


def _event(message: dict[str, Any]) -> bytes:
    return f"event: {message['type']}\ndata: {json.dumps(message)}\n\n".encode()


async def _fail(reply: Reply, failure: TurnFailure) -> None:
    event = _event(answer.error(failure, reply.request_id))
    await reply.refuse(answer.http_error(failure, reply.request_id), event)
