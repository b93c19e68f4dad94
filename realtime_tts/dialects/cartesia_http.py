"""Cartesia's API over HTTP: `POST /tts/bytes`, `POST /tts/sse`, `GET /voices` and one of them."""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from realtime_tts.dialects import cartesia_answer as answer
from realtime_tts.dialects.cartesia_request import Generation, our_voice, parse
from realtime_tts.dialects.catalogue import our_language, our_model, own_voice
from realtime_tts.dialects.http import EVENTS, check_text, read_object, timed_sounds
from realtime_tts.dialects.refusals import not_ready
from realtime_tts.dialects.speech_endpoint import Order, Pieces, SpeechEndpoint
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.server.front import Front
from realtime_tts.server.speech import Speech

BYTES_PATH, SSE_PATH, VOICES_PATH = "/tts/bytes", "/tts/sse", "/voices"

_FIRST_PAGED_VERSION = "2025"
_BORN = "1970-01-01T00:00:00Z"


def http_routes(front: Front) -> list[BaseRoute]:
    """The API's routes over HTTP."""
    return [
        Route(BYTES_PATH, CartesiaSpeech(front, events=False)),
        Route(SSE_PATH, CartesiaSpeech(front, events=True)),
        Route(VOICES_PATH, VoicesEndpoint(front)),
        Route(VOICES_PATH + "/{id}", VoicesEndpoint(front)),
    ]


class CartesiaSpeech(SpeechEndpoint):
    """`POST /tts/bytes`, or `/tts/sse` if `events`."""

    api = "cartesia"

    def __init__(self, front: Front, *, events: bool) -> None:
        super().__init__(front)
        self._events = events

    async def order(self, request: Request, request_id: str) -> Order:
        asked = parse(await read_object(request.receive, self.limits))
        check_text("transcript", asked.transcript, self.limits)
        info = self.front.info
        settings = self.settings(
            audio=asked.output_format.audio,
            model=our_model(asked.model_id, info),
            voice=our_voice(asked, self.front.voice_names()),
            language=our_language(asked.language, info),
        )
        order = Order(asked.transcript, settings, other_speed=asked.other_speed)
        if not self._events:
            return order
        return replace(order, media_type=EVENTS, pieces=partial(_events, asked))

    def wrong_method(self, method: str, request_id: str) -> Response:
        return answer.wrong_method(method, "POST")

    def unfit(self, problem: RequestError | ProtocolError, request_id: str) -> Response:
        return self.failed(TurnFailure("bad_request", str(problem), False), request_id)

    def failed(self, failure: TurnFailure, request_id: str) -> Response:
        return answer.http_error(failure, request_id)

    def failed_event(self, failure: TurnFailure, request_id: str) -> bytes:
        return _event(answer.error(failure, request_id))


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
        failure = not_ready(self._front)
        if failure is not None:
            return answer.http_error(failure, "")
        names = list(self._front.voice_names())
        asked = request.path_params.get("id")
        if asked is not None:
            found = own_voice(names, asked)
            if found is None:
                message = (
                    f"there is no voice {asked[:40]!r}; GET {VOICES_PATH} lists those there are"
                )
                body = {"title": "Not found", "message": message, "error_code": "voice_not_found"}
                return JSONResponse({**body, "status_code": 404}, 404)
            return JSONResponse(_voice(found))
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


async def _events(request: Generation, speech: Speech) -> Pieces:
    """Server-sent events: chunks, times of words if they were asked for, and `done`."""
    watch = answer.Stopwatch()
    named = {} if request.context_id is None else {"context_id": request.context_id}
    async with aclosing(timed_sounds(speech)) as pieces:
        async for piece, span in pieces:
            yield _event({**answer.chunk(piece, watch.step_ms()), **named}) if piece else b""
            if request.add_timestamps and span is not None and span.text.strip():
                yield _event({**answer.timestamps(span), **named})
    yield _event({**answer.done(speech.last.reason), **named})


def _event(message: dict[str, Any]) -> bytes:
    return f"event: {message['type']}\ndata: {json.dumps(message)}\n\n".encode()
