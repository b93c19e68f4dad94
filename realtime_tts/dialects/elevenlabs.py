"""ElevenLabs' API: the routes, and those over HTTP, `POST /v1/text-to-speech/{voice}` and below it.

docs/dialects.md says what is taken and what is not. `elevenlabs_socket.py` has the sockets,
`elevenlabs_lists.py` voices and models.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from realtime_tts.dialects import elevenlabs_answer as answer
from realtime_tts.dialects.catalogue import our_language, our_model
from realtime_tts.dialects.elevenlabs_answer import deny, deny_or
from realtime_tts.dialects.elevenlabs_lists import list_routes
from realtime_tts.dialects.elevenlabs_request import (
    DEFAULT_FORMAT,
    audio_of,
    our_voice,
    parse_body,
)
from realtime_tts.dialects.elevenlabs_socket import ContextsSocket, StreamSocket
from realtime_tts.dialects.http import check_text, read_object, timed_sounds
from realtime_tts.dialects.speech_endpoint import Order, Pieces, SpeechEndpoint
from realtime_tts.dialects.timing import Timed, characters_of
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.server.front import Front
from realtime_tts.server.speech import Speech

__all__ = ["DIALOGUE_PATH", "QUERY_KEYS", "SPEECH_PATH", "deny", "deny_or", "routes"]

SPEECH_PATH = "/v1/text-to-speech/"
DIALOGUE_PATH = "/v1/text-to-dialogue"
VOICES_2_PATH = "/v2/voices"
QUERY_KEYS = frozenset({"xi-api-key", "xi_api_key", "single_use_token"})

_NO_SOUND = b'"audio_base64": ""'
_SOUND_BYTES = 3 * 65_536
"""Of sound in one piece of a long answer; in base64 three bytes end a group."""

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
        Route(voice, ElevenLabsSpeech(front)),
        Route(voice + "/stream", ElevenLabsSpeech(front)),
        Route(voice + "/with-timestamps", ElevenLabsSpeech(front, times=True, whole=True)),
        Route(voice + "/stream/with-timestamps", ElevenLabsSpeech(front, times=True)),
        *list_routes(front, VOICES_2_PATH),
        Route(DIALOGUE_PATH + "{rest:path}", _no_dialogue, methods=["GET", "POST"]),
        WebSocketRoute(DIALOGUE_PATH + "{rest:path}", _no_dialogue_socket),
    ]


async def _no_dialogue(request: Request) -> Response:
    return JSONResponse(answer.detail("model_not_supported", _NO_DIALOGUE), 404)


async def _no_dialogue_socket(websocket: WebSocket) -> None:
    await deny(websocket.scope, websocket.send, 404, "model_not_supported", _NO_DIALOGUE)


class ElevenLabsSpeech(SpeechEndpoint):
    """Speech for a text that comes whole. `times`: JSON, with its characters; `whole`: in one."""

    api = "elevenlabs"

    def __init__(self, front: Front, *, times: bool = False, whole: bool = False) -> None:
        super().__init__(front)
        self._times = times
        self._whole = whole

    async def order(self, request: Request, request_id: str) -> Order:
        body = parse_body(await read_object(request.receive, self.limits))
        check_text("text", body.text, self.limits)
        output_format = request.query_params.get("output_format") or DEFAULT_FORMAT
        info = self.front.info
        settings = self.front.settings(
            longest_lead=True,
            audio=audio_of(output_format),
            model=our_model(body.model_id, info),
            voice=our_voice(request.path_params["voice"], self.front.voice_names()),
            language=our_language(body.language_code, info),
            seed=body.seed,
        )
        order = Order(body.text, settings, other_speed=body.voice_settings.speed != 1)
        if not self._times:
            return order
        pieces = _whole if self._whole else _lines
        return replace(order, media_type="application/json", pieces=pieces)

    def wrong_method(self, method: str, request_id: str) -> Response:
        return answer.wrong_method(method, "POST")

    def unfit(self, problem: RequestError | ProtocolError, request_id: str) -> Response:
        return answer.bad_request(problem, request_id)

    def failed(self, failure: TurnFailure, request_id: str) -> Response:
        return answer.http_error(failure, request_id)


async def _lines(speech: Speech) -> Pieces:
    """A JSON object a line: sound, or the characters that it brought."""
    async with aclosing(timed_sounds(speech)) as pieces:
        async for piece, span in pieces:
            if piece or span is not None:
                yield _object(piece, [] if span is None else characters_of(span)) + b"\n"


async def _whole(speech: Speech) -> Pieces:
    """One JSON object, when all is spoken."""
    sound, characters = bytearray(), list[Timed]()
    async with aclosing(timed_sounds(speech)) as pieces:
        async for piece, span in pieces:
            sound += piece
            characters += [] if span is None else characters_of(span)
    head, tail = _object(b"", characters).split(_NO_SOUND, 1)
    yield head + _NO_SOUND[:-1]
    for at in range(0, len(sound), _SOUND_BYTES):  # minutes of it at once would hold others up
        yield base64.b64encode(sound[at : at + _SOUND_BYTES])
        await asyncio.sleep(0)
    yield _NO_SOUND[-1:] + tail


def _object(sound: bytes, characters: list[Timed]) -> bytes:
    alignment = answer.seconds(characters) if characters else None
    return json.dumps(
        {
            "audio_base64": base64.b64encode(sound).decode(),
            "alignment": alignment,
            "normalized_alignment": alignment,
        }
    ).encode()
