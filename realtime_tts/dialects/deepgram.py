"""Deepgram's API: `/v1/speak` and `/v2/speak` (Flux), each as a WebSocket and over HTTP.

docs/dialects.md says what is supported.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from realtime_tts.dialects import deepgram_messages as messages
from realtime_tts.dialects.deepgram_flux import FluxSocket
from realtime_tts.dialects.deepgram_socket import SpeakSocket
from realtime_tts.dialects.speech_endpoint import Order, SpeechEndpoint, read_object
from realtime_tts.errors import RequestError
from realtime_tts.protocol.parsing import TooLarge
from realtime_tts.server.auth import account_of
from realtime_tts.server.endpoints import BodyTooLarge
from realtime_tts.server.front import Front

SPEAK_PATH, FLUX_PATH = "/v1/speak", "/v2/speak"


def routes(front: Front) -> list[BaseRoute]:
    return [
        SpeakSocket.route(front, SPEAK_PATH),
        FluxSocket.route(front, FLUX_PATH),
        Route(SPEAK_PATH, DeepgramSpeech(front)),
        Route(FLUX_PATH, DeepgramSpeech(front)),
    ]


class DeepgramSpeech(SpeechEndpoint):
    """The endpoint for a whole text; the parameters of the address say how to speak it."""

    api = messages.API

    async def order(self, request: Request, request_id: str) -> Order:
        text = await self._read(request)
        account = account_of(request.scope)
        wanted = messages.http_wanted(request.query_params, self.front, account)
        headers = messages.speech_headers(request_id, wanted, len(text))
        return Order(text, wanted.settings, headers=headers, warning=wanted.warning)

    async def _read(self, request: Request) -> str:
        try:
            body = await read_object(request, self.front.limits)
        except BodyTooLarge as error:
            raise TooLarge(str(error)) from None
        if not (text := messages.text_of(body, self.front.limits)):
            raise RequestError("`text`, the text to speak, must be a string that is not empty")
        return text
