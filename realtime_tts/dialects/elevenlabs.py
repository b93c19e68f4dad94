"""ElevenLabs' API: the routes. docs/dialects.md says what is taken and what is not.

`elevenlabs_socket.py` has the sockets, `elevenlabs_http.py` the routes over HTTP,
`elevenlabs_lists.py` voices and models.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from realtime_tts.dialects import elevenlabs_answer as answer
from realtime_tts.dialects.elevenlabs_answer import deny, deny_or
from realtime_tts.dialects.elevenlabs_http import http_routes
from realtime_tts.dialects.elevenlabs_lists import list_routes
from realtime_tts.dialects.elevenlabs_socket import ContextsSocket, StreamSocket
from realtime_tts.server.front import Front

__all__ = ["DIALOGUE_PATH", "QUERY_KEYS", "SPEECH_PATH", "deny", "deny_or", "routes"]

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
