"""Cartesia's API: `/tts/websocket`, many contexts at once over one socket; `POST /tts/bytes` and
`/tts/sse`; `GET /voices` and one of them.

docs/dialects.md says what is supported. A context speaks in one voice and one format, those of its
first message; later messages bring text. Clients route by a context's id, so every message has it.
"""

from __future__ import annotations

import json
import secrets
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from realtime_tts.dialects import cartesia_messages as messages
from realtime_tts.dialects.api import ListEndpoint, Refusal, page_of
from realtime_tts.dialects.cartesia_dictionaries import dictionary_routes
from realtime_tts.dialects.catalogue import own_voice
from realtime_tts.dialects.context import SpeechContext
from realtime_tts.dialects.fields import check_length
from realtime_tts.dialects.socket import SpeechSocket
from realtime_tts.dialects.speech_endpoint import (
    EVENTS,
    Order,
    Pieces,
    SpeechEndpoint,
    check_text,
    read_object,
    timed_sounds,
)
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.server.auth import account_of
from realtime_tts.server.front import Front
from realtime_tts.server.speech import Speech
from realtime_tts.server.track import Segment
from realtime_tts.server.writer import Messages
from realtime_tts.text.speech_times import SpokenSpan

SOCKET_PATH, VOICES_PATH = "/tts/websocket", "/voices"
QUERY_KEYS = frozenset({"api_key", "access_token"})

_FIRST_PAGED_VERSION = "2025"
_BORN = "1970-01-01T00:00:00Z"


def routes(front: Front) -> list[BaseRoute]:
    return [
        CartesiaSocket.route(front, SOCKET_PATH),
        Route("/tts/bytes", CartesiaSpeech(front, events=False)),
        Route("/tts/sse", CartesiaSpeech(front, events=True)),
        *dictionary_routes(front),
        Route(VOICES_PATH, ListEndpoint(messages.API, front, _voices)),
        Route(VOICES_PATH + "/{id}", ListEndpoint(messages.API, front, _voices)),
    ]


@dataclass(slots=True)
class _State:
    """What one context needs besides its speech."""

    add_timestamps: bool
    watch: messages.Stopwatch = field(default_factory=messages.Stopwatch)
    flushes_done: int = 0
    reason: str = "complete"


class CartesiaSocket(SpeechSocket):
    api = messages.API
    _last_id = ""  # context of the last message, which errors are about

    # From the client.

    def received(self, message: dict[str, Any]) -> None:
        named = message.get("context_id")
        self._last_id = named if isinstance(named, str) else self._last_id
        request = messages.parse(message)
        context_id = request.context_id
        if context_id is None:
            if request.cancel or request.continue_:
                raise RequestError(
                    "`context_id` is missing: say which one goes on, or is cancelled"
                )
            context_id = self._last_id = secrets.token_hex(8)
        ends = request.cancel or not request.continue_
        if context_id in self.failed_ids:
            if ends:
                self.failed_ids.remove(context_id)
            return
        if request.cancel:
            self.cancel(context_id)  # no answer: clients ignore a cancelled context
            return
        if "transcript" not in message:
            raise RequestError("`transcript`, the text to speak, is missing; it may be empty")
        self.taking_text(context_id)
        try:
            context = self._feed(context_id, request)
        except (TurnFailure, RequestError) as error:
            # A wrong field opens no context: its message may come again.
            if isinstance(error, TurnFailure) or context_id in self.contexts:
                self.lose(context_id, goes_on=not ends)
            raise
        try:
            if request.flush:
                context.cut()
        finally:  # an end counts, whether or not there was room for a flush before it
            if ends:
                context.end()

    def _feed(self, context_id: str, request: messages.Generation) -> SpeechContext:
        context = self.contexts.get(context_id) or self.open_context(
            context_id,
            messages.settings_of(request, self.front, self.account),
            hold_seconds=request.hold_seconds,
            tag=_State(request.add_timestamps),
        )
        check_length("transcript", request.transcript, self.limits.max_text_chars)
        context.feed(request.transcript, whole=request.whole_units)
        return context

    # To the client.

    def sound(self, context: SpeechContext, segment: Segment, data: bytes) -> Messages:
        state: _State = context.tag
        return [_of(context, messages.chunk(data, state.watch.step_ms()), state.flushes_done + 1)]

    def spoken(self, context: SpeechContext, segment: Segment, span: SpokenSpan) -> Messages:
        state: _State = context.tag
        if not state.add_timestamps or not span.text.strip():
            return ()
        return [_of(context, messages.timestamps(span), state.flushes_done + 1)]

    def segment_done(self, context: SpeechContext, segment: Segment) -> Messages:
        state: _State = context.tag
        state.reason = segment.reason
        if not segment.flushed:
            return ()
        state.flushes_done += 1
        return [_of(context, messages.flush_done(state.flushes_done))]

    def done(self, context: SpeechContext) -> Messages:
        return [_of(context, messages.done(context.tag.reason))]

    def failed(self, context: SpeechContext, failure: TurnFailure) -> Messages:
        if not context.speech.ended:
            self.failed_ids.append(context.id)
        return [_of(context, messages.error(failure, self.name))]

    def refusal(self, failure: TurnFailure) -> Messages:
        body = messages.error(failure, self.name)
        return [json.dumps({**body, "context_id": self._last_id})]


def _of(context: SpeechContext, message: dict[str, Any], flush_id: int | None = None) -> str:
    extra: dict[str, Any] = {"context_id": context.id}
    if flush_id is not None:
        extra["flush_id"] = flush_id
    return json.dumps({**message, **extra})


class CartesiaSpeech(SpeechEndpoint):
    """`POST /tts/bytes`, or `/tts/sse` if `events`."""

    api = messages.API

    def __init__(self, front: Front, *, events: bool) -> None:
        super().__init__(front)
        self._events = events

    async def order(self, request: Request, request_id: str) -> Order:
        asked = messages.parse(await read_object(request, self.front.limits))
        check_text("transcript", asked.transcript, self.front.limits)
        account = account_of(request.scope)
        settings = messages.settings_of(asked, self.front, account, longest_lead=True)
        order = Order(asked.transcript, settings, warning=asked.our_speed.warning)
        if not self._events:
            return order
        return replace(order, media_type=EVENTS, pieces=partial(_events, asked))

    def failed_event(self, failure: TurnFailure, request_id: str) -> bytes:
        return _event(messages.error(failure, request_id))


def _voices(front: Front, request: Request) -> Any | Refusal:
    """Return a page of the voices, or one voice."""
    names, asked, query = (
        list(front.voice_names(account_of(request.scope))),
        request.path_params.get("id"),
        request.query_params,
    )
    if asked is not None:
        found = own_voice(names, asked)
        message = f"there is no voice {asked[:40]!r}; GET {VOICES_PATH} lists those there are"
        return _voice(found) if found else Refusal(404, "voice_not_found", message)
    if query.get("q"):
        names = [name for name in names if query["q"].lower() in name.lower()]
    version = request.headers.get("cartesia-version") or query.get("cartesia_version")
    return _page(names, query, version or "9999")


def _page(names: list[str], query: Any, version: str) -> Any:
    if version < _FIRST_PAGED_VERSION:
        return [_voice(name) for name in names]
    page, has_more = page_of(names, query, "limit", "starting_after", "ending_before")
    next_page = page[-1] if has_more else None
    return {"data": [_voice(name) for name in page], "has_more": has_more, "next_page": next_page}


def _voice(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "name": name,
        "description": "",
        "tagline": "",
        "language": "en",
        "locales": [],
        "created_at": _BORN,
        "is_owner": True,
        "is_public": False,
        "user_id": "",
        "access": "private",
        "visibility": "all",
    }


async def _events(request: messages.Generation, speech: Speech) -> Pieces:
    """Yield server-sent events: chunks, times of words if they were asked for, and `done`."""
    watch = messages.Stopwatch()
    named = {} if request.context_id is None else {"context_id": request.context_id}
    async with aclosing(timed_sounds(speech)) as pieces:
        async for piece, span in pieces:
            yield _event({**messages.chunk(piece, watch.step_ms()), **named}) if piece else b""
            if request.add_timestamps and span is not None and span.text.strip():
                yield _event({**messages.timestamps(span), **named})
    yield _event({**messages.done(speech.last.reason), **named})


def _event(message: dict[str, Any]) -> bytes:
    return f"event: {message['type']}\ndata: {json.dumps(message)}\n\n".encode()
