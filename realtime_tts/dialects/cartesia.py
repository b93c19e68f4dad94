"""Cartesia's API over a WebSocket: `/tts/websocket`, many contexts at once over one socket.

docs/dialects.md says what is taken and what is not; `cartesia_http.py` has the API's routes over
HTTP. A context speaks in one voice and one format, those of its first message; later messages bring
text. Its messages carry its id always, since clients route by it before they look at anything else.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import Any

from starlette.routing import BaseRoute
from starlette.websockets import WebSocket

from realtime_tts.dialects import cartesia_answer as answer
from realtime_tts.dialects.cartesia_http import http_routes
from realtime_tts.dialects.cartesia_request import Generation, parse, settings_of
from realtime_tts.dialects.context import Messages, Segment, SpeechContext
from realtime_tts.dialects.fields import check_length
from realtime_tts.dialects.socket import SpeechSocket
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.server.front import Front
from realtime_tts.server.speech import SpokenSpan

__all__ = ["QUERY_KEYS", "SOCKET_PATH", "routes"]

SOCKET_PATH = "/tts/websocket"
QUERY_KEYS = frozenset({"api_key", "access_token"})


def routes(front: Front) -> list[BaseRoute]:
    """The routes of this API."""
    return [CartesiaSocket.route(front, SOCKET_PATH), *http_routes(front)]


@dataclass(slots=True)
class _State:
    """What one context needs besides its speech."""

    add_timestamps: bool
    watch: answer.Stopwatch = field(default_factory=answer.Stopwatch)
    flushes_done: int = 0
    last: str = ""  # the end of its text
    reason: str = "complete"


class CartesiaSocket(SpeechSocket):
    """One socket of this API."""

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        super().__init__(front, websocket)
        self._last_id = ""  # errors are of the context that the last message was for

    # From the client.

    def received(self, message: dict[str, Any]) -> None:
        named = message.get("context_id")
        self._last_id = named if isinstance(named, str) else self._last_id
        request = parse(message)
        context_id = request.context_id
        if context_id is None:
            if request.cancel or request.continue_:
                raise RequestError(
                    "`context_id` is missing: say which one goes on, or is cancelled"
                )
            context_id = self._last_id = secrets.token_hex(8)
        if request.cancel:
            self.cancel(context_id)  # no answer: clients listen to it no more
            return
        if "transcript" not in message:
            raise RequestError("`transcript`, the text to speak, is missing; it may be empty")
        self._generate(context_id, request)

    def _generate(self, context_id: str, request: Generation) -> None:
        check_length("transcript", request.transcript, self.limits.max_text_chars)
        context = self.contexts.get(context_id) or self._begin(context_id, request)
        if context.ended:
            raise RequestError(
                f"the context {context_id[:40]!r} was ended by a message without `continue`; "
                "wait for its `done`, or take another id"
            )
        context.feed(self._joined(context.tag, request))
        if request.flush:
            context.flush()
            context.tag.last = ""
        if not request.continue_:
            context.end()

    def _begin(self, context_id: str, request: Generation) -> SpeechContext:
        return self.open_context(
            context_id,
            settings_of(request, self.front),
            hold_seconds=request.hold_seconds,
            tag=_State(request.add_timestamps),
        )

    def _joined(self, state: _State, request: Generation) -> str:
        """Whole sentences come without the space between them, pieces of words as they are."""
        text = request.transcript
        glue = request.whole_units and state.last and text and not text[0].isspace()
        glued = " " + text if glue and not state.last.isspace() else text
        state.last = text[-1:] or state.last
        return glued

    # To the client.

    def sound(self, context: SpeechContext, segment: Segment, data: bytes) -> Messages:
        state: _State = context.tag
        return [_of(context, answer.chunk(data, state.watch.step_ms()), state.flushes_done + 1)]

    def spoken(self, context: SpeechContext, segment: Segment, span: SpokenSpan) -> Messages:
        state: _State = context.tag
        if not state.add_timestamps or not span.text.strip():
            return ()
        return [_of(context, answer.timestamps(span), state.flushes_done + 1)]

    def segment_done(self, context: SpeechContext, segment: Segment) -> Messages:
        state: _State = context.tag
        state.reason = segment.reason
        if not segment.flushed:
            return ()
        state.flushes_done += 1
        return [_of(context, answer.flush_done(state.flushes_done))]

    def done(self, context: SpeechContext) -> Messages:
        return [_of(context, answer.done(context.tag.reason))]

    def failed(self, context: SpeechContext, failure: TurnFailure) -> Messages:
        return [_of(context, answer.error(failure, self.name))]

    def refusal(self, failure: TurnFailure) -> Messages:
        body = answer.error(failure, self.name)
        return [json.dumps({**body, "context_id": self._last_id})]

    @classmethod
    def denial(cls, status: int, failure: TurnFailure) -> Any:
        body = answer.error(failure, "")
        return {**body, "status_code": status}


def _of(context: SpeechContext, message: dict[str, Any], flush_id: int | None = None) -> str:
    extra: dict[str, Any] = {"context_id": context.id}
    if flush_id is not None:
        extra["flush_id"] = flush_id
    return json.dumps({**message, **extra})
