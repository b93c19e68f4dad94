"""Deepgram's API: `/v1/speak` and `/v2/speak` (Flux), each as a WebSocket and over HTTP.

docs/dialects.md says what is taken and what is not.
"""

from __future__ import annotations

from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from realtime_tts.dialects.deepgram_answer import deny
from realtime_tts.dialects.deepgram_flux import FluxSocket
from realtime_tts.dialects.deepgram_http import DeepgramSpeech
from realtime_tts.dialects.deepgram_socket import SpeakSocket
from realtime_tts.server.front import Front

__all__ = ["FLUX_PATH", "SPEAK_PATH", "deny", "routes"]

SPEAK_PATH, FLUX_PATH = "/v1/speak", "/v2/speak"


def routes(front: Front) -> list[BaseRoute]:
    """The routes of this API."""

    async def speak(websocket: WebSocket) -> None:
        await SpeakSocket.serve(front, websocket)

    async def flux(websocket: WebSocket) -> None:
        await FluxSocket.serve(front, websocket)

    return [
        WebSocketRoute(SPEAK_PATH, speak),
        WebSocketRoute(FLUX_PATH, flux),
        Route(SPEAK_PATH, DeepgramSpeech(front)),
        Route(FLUX_PATH, DeepgramSpeech(front)),
    ]
