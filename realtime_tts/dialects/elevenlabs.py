"""ElevenLabs' API: the routes, and the socket of one text, `…/stream-input`.

docs/dialects.md says what is taken and what is not. `elevenlabs_contexts.py` has the socket of many
texts, `elevenlabs_http.py` the routes over HTTP, `elevenlabs_lists.py` voices and models.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from realtime_tts.dialects import elevenlabs_answer as answer
from realtime_tts.dialects.context import Messages, SpeechContext
from realtime_tts.dialects.elevenlabs_answer import deny, deny_or
from realtime_tts.dialects.elevenlabs_contexts import ContextsSocket
from realtime_tts.dialects.elevenlabs_http import http_routes
from realtime_tts.dialects.elevenlabs_lists import list_routes
from realtime_tts.dialects.elevenlabs_request import Message
from realtime_tts.dialects.elevenlabs_socket import ElevenLabsSocket, encoded
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.server.front import Front

__all__ = [
    "DIALOGUE_PATH",
    "QUERY_KEYS",
    "SPEECH_PATH",
    "VOICES_2_PATH",
    "deny",
    "deny_or",
    "routes",
]

SPEECH_PATH = "/v1/text-to-speech/"
DIALOGUE_PATH = "/v1/text-to-dialogue"
VOICES_2_PATH = "/v2/voices"
QUERY_KEYS = frozenset({"xi-api-key", "xi_api_key", "single_use_token"})

_NO_DIALOGUE = (
    "this server has no text-to-dialogue, where clients go for the models eleven_v3 and eleven_v4; "
    "ask for another model, such as eleven_flash_v2_5: the loaded checkpoint speaks for any"
)


def routes(front: Front) -> Sequence[BaseRoute]:
    """The routes of this API. Those of its lists pass by the clients of others."""
    voice = SPEECH_PATH + "{voice}"
    return [
        StreamSocket.route(front, voice + "/stream-input"),
        ContextsSocket.route(front, voice + "/multi-stream-input"),
        *http_routes(front, SPEECH_PATH),
        *list_routes(front, VOICES_2_PATH),
        Route(DIALOGUE_PATH + "{rest:path}", _no_dialogue, methods=["GET", "POST"]),
        WebSocketRoute(DIALOGUE_PATH + "{rest:path}", _no_dialogue_socket),
    ]


async def _no_dialogue(request: Request) -> Response:
    return JSONResponse(answer.detail("model_not_supported", _NO_DIALOGUE), 404)


async def _no_dialogue_socket(websocket: WebSocket) -> None:
    await deny(websocket.scope, websocket.send, 404, "model_not_supported", _NO_DIALOGUE)


class StreamSocket(ElevenLabsSocket):
    """One text, spoken as it comes; then the socket ends."""

    max_contexts = 1

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        super().__init__(front, websocket)
        self._failure: TurnFailure | None = None
        self._ended = False

    def take(self, message: Message) -> None:
        if self._ended:
            if message.text and not message.text.isspace():
                raise RequestError("the text was ended by an empty `text`; nothing follows it")
            return
        if message.text == "":
            self._end()
            return
        context = self.contexts.get("")
        if context is None:
            try:
                context = self.begin("")
            except TurnFailure as failure:
                self.fail(failure, answer.close_code(failure))
                return
        self.feed(context, message)

    def _end(self) -> None:
        self._ended = True
        self.finish()

    def received_invalid(self, problem: RequestError | ProtocolError) -> None:
        """What is wrong ends this socket, as it does the original's, but for speech on its way."""
        failure = TurnFailure(answer.reason_of(problem), str(problem), False)
        if self._ended:
            self.say(*self.refusal(failure))
        else:
            self.fail(failure, answer.close_code(failure))

    def finished(self) -> Messages:
        return () if self._failure else [encoded(answer.final())]

    def done(self, context: SpeechContext) -> Messages:
        """Also when it ended by itself, for want of text."""
        self._end()
        return ()

    def failed(self, context: SpeechContext, failure: TurnFailure) -> Messages:
        self._failure = failure
        return [encoded(answer.error(failure))]

    def context_over(self, context: SpeechContext) -> None:
        if self._failure is not None:
            self.contexts.pop(context.id, None)
            self.close(answer.close_code(self._failure), answer.close_reason(self._failure))
        super().context_over(context)
