"""Deepgram's API: `/v1/speak` and `/v2/speak` (Flux), each as a WebSocket and over HTTP.

docs/dialects.md says what is taken and what is not.
"""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from realtime_tts.dialects.deepgram_answer import deny
from realtime_tts.dialects.deepgram_flux import FluxSocket
from realtime_tts.dialects.deepgram_http import DeepgramSpeech
from realtime_tts.dialects.deepgram_socket import SpeakSocket
from realtime_tts.server.front import Front

__all__ = ["FLUX_PATH", "SPEAK_PATH", "deny", "routes"]

SPEAK_PATH, FLUX_PATH = "/v1/speak", "/v2/speak"


def routes(front: Front) -> list[BaseRoute]:
    """The routes of this API."""
    return [
        SpeakSocket.route(front, SPEAK_PATH),
        FluxSocket.route(front, FLUX_PATH),
        Route(SPEAK_PATH, DeepgramSpeech(front)),
        Route(FLUX_PATH, DeepgramSpeech(front)),
    ]
