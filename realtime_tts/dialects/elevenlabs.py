"""ElevenLabs' API: all its routes, and `POST /v1/text-to-speech/{voice}` and those below it.

docs/dialects.md says what is supported. `elevenlabs_socket.py` has the sockets.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route, WebSocketRoute
from starlette.types import Scope
from starlette.websockets import WebSocket

from realtime_tts.dialects import elevenlabs_messages as messages
from realtime_tts.dialects.api import ListEndpoint, Refusal, page_of
from realtime_tts.dialects.catalogue import model_names, our_language, our_model, own_voice
from realtime_tts.dialects.elevenlabs_dictionaries import dictionary_routes
from realtime_tts.dialects.elevenlabs_messages import API
from realtime_tts.dialects.elevenlabs_socket import ContextsSocket, StreamSocket
from realtime_tts.dialects.speech_endpoint import (
    Order,
    Pieces,
    SpeechEndpoint,
    check_text,
    read_object,
    timed_sounds,
)
from realtime_tts.dialects.timing import Timed, characters_of
from realtime_tts.server.auth import account_of
from realtime_tts.server.front import Front
from realtime_tts.server.speech import Speech

SPEECH_PATH = "/v1/text-to-speech/"
DIALOGUE_PATH = "/v1/text-to-dialogue"
VOICES_2_PATH = "/v2/voices"
QUERY_KEYS = frozenset({"xi-api-key", "xi_api_key", "single_use_token"})

_NO_SOUND = b'"audio_base64": ""'
_SOUND_BYTES = 3 * 65_536
"""Bytes of sound in one piece of a long answer; in base64 three bytes end a group."""

_NO_MODEL = "model_not_supported"
_NO_DIALOGUE = (
    "this server has no text-to-dialogue, where clients go for the models eleven_v3 and eleven_v4; "
    "ask for another model, such as eleven_flash_v2_5: the loaded checkpoint speaks for any"
)


def routes(front: Front) -> Sequence[BaseRoute]:
    """Return the routes of this API. Its lists serve only its own clients."""
    voice = SPEECH_PATH + "{voice}"
    return [
        StreamSocket.route(front, voice + "/stream-input"),
        ContextsSocket.route(front, voice + "/multi-stream-input"),
        Route(voice, ElevenLabsSpeech(front)),
        Route(voice + "/stream", ElevenLabsSpeech(front)),
        Route(voice + "/with-timestamps", ElevenLabsSpeech(front, times=True, whole=True)),
        Route(voice + "/stream/with-timestamps", ElevenLabsSpeech(front, times=True)),
        _OwnClients("/v1/voices", ListEndpoint(API, front, _voices), methods=["GET"]),
        _OwnClients("/v1/voices/{id}", ListEndpoint(API, front, _voice_called), methods=["GET"]),
        _OwnClients("/v1/models", ListEndpoint(API, front, _models), methods=["GET"]),
        Route(VOICES_2_PATH, ListEndpoint(API, front, _page)),
        *dictionary_routes(front),
        Route(DIALOGUE_PATH + "{rest:path}", _no_dialogue, methods=["GET", "POST"]),
        WebSocketRoute(DIALOGUE_PATH + "{rest:path}", _no_dialogue_socket),
    ]


async def _no_dialogue(request: Request) -> Response:
    return API.response(Refusal(404, _NO_MODEL, _NO_DIALOGUE), API.new_request_id())


async def _no_dialogue_socket(websocket: WebSocket) -> None:
    await API.deny(websocket.scope, websocket.send, 404, _NO_MODEL, _NO_DIALOGUE)


class ElevenLabsSpeech(SpeechEndpoint):
    """The endpoint for a whole text. `times`: JSON with the times of characters; `whole`: in one
    object."""

    api = API

    def __init__(self, front: Front, *, times: bool = False, whole: bool = False) -> None:
        super().__init__(front)
        self._times = times
        self._whole = whole

    async def order(self, request: Request, request_id: str) -> Order:
        body = messages.parse_body(await read_object(request, self.front.limits))
        check_text("text", body.text, self.front.limits)
        output_format = request.query_params.get("output_format") or messages.DEFAULT_FORMAT
        info, names = self.front.info, _names(self.front, request)
        settings = self.front.settings(
            longest_lead=True,
            audio=messages.audio_of(output_format),
            model=our_model(body.model_id, info),
            voice=messages.our_voice(request.path_params["voice"], names),
            language=our_language(body.language_code, info),
            seed=body.seed,
            lexicons=messages.lexicons_of(body.pronunciation_dictionary_locators, self.front),
            speed=body.voice_settings.our_speed.given,
        )
        order = Order(
            body.text,
            settings,
            headers=API.id_headers(request_id),
            warning=body.voice_settings.our_speed.warning,
        )
        if not self._times:
            return order
        pieces = _whole if self._whole else _lines
        return replace(order, media_type="application/json", pieces=pieces)


async def _lines(speech: Speech) -> Pieces:
    """Yield JSON lines: each has sound, or the characters that it brought."""
    async with aclosing(timed_sounds(speech)) as pieces:
        async for piece, span in pieces:
            if piece or span is not None:
                yield _object(piece, [] if span is None else characters_of(span)) + b"\n"


async def _whole(speech: Speech) -> Pieces:
    """Yield one JSON object, when all is spoken."""
    sound, characters = bytearray(), list[Timed]()
    async with aclosing(timed_sounds(speech)) as pieces:
        async for piece, span in pieces:
            sound += piece
            characters += [] if span is None else characters_of(span)
    head, tail = _object(b"", characters).split(_NO_SOUND, 1)
    yield head + _NO_SOUND[:-1]
    for at in range(0, len(sound), _SOUND_BYTES):  # minutes at once would delay other clients
        yield base64.b64encode(sound[at : at + _SOUND_BYTES])
        await asyncio.sleep(0)
    yield _NO_SOUND[-1:] + tail


def _object(sound: bytes, characters: list[Timed]) -> bytes:
    alignment = messages.seconds(characters) if characters else None
    return json.dumps(
        {
            "audio_base64": base64.b64encode(sound).decode(),
            "alignment": alignment,
            "normalized_alignment": alignment,
        }
    ).encode()


# Lists, at paths that other APIs have as well.


class _OwnClients(Route):
    """A route for the clients of this API alone: other requests go on to the routes after it."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, found = super().matches(scope)
        if match is not Match.FULL or not messages.is_client(scope):
            return Match.NONE, {}
        return match, found


def _voices(front: Front, request: Request) -> Any:
    return {"voices": [_voice(front, name) for name in _names(front, request)]}


def _names(front: Front, request: Request) -> tuple[str, ...]:
    """Return the voices that the request's key may use."""
    return front.voice_names(account_of(request.scope))


def _voice_called(front: Front, request: Request) -> Any | Refusal:
    """Return the voice with the id of the path, in any case."""
    asked = request.path_params["id"]
    found = own_voice(_names(front, request), asked)
    message = f"there is no voice {asked[:40]!r}; GET /v1/voices lists those there are"
    return _voice(front, found) if found else Refusal(404, "voice_not_found", message)


def _page(front: Front, request: Request) -> Any:
    """Return a page of the voices: the second version of the list."""
    query, names = request.query_params, list(_names(front, request))
    if query.get("search"):
        names = [name for name in names if query["search"].lower() in name.lower()]
    if asked := query.getlist("voice_ids"):
        names = [name for name in names if name in asked]
    page, has_more = page_of(names, query, "page_size", "next_page_token")
    return {
        "voices": [_voice(front, name) for name in page],
        "has_more": has_more,
        "total_count": len(names),
        "next_page_token": page[-1] if has_more else None,
    }


def _voice(front: Front, name: str) -> dict[str, Any]:
    built_in = name in front.info.voices
    return {
        "voice_id": name,
        "name": name,
        "category": "premade" if built_in else "cloned",
        "labels": {},
        "description": None,
        "preview_url": None,
        "settings": None,
        "available_for_tiers": [],
        "high_quality_base_model_ids": [],
    }


def _models(front: Front, request: Request) -> Any:
    """Return the loaded checkpoints."""
    return [_model(front, name) for name in model_names(front.info)]


def _model(front: Front, name: str) -> dict[str, Any]:
    info = front.info
    most = front.limits.max_text_chars
    return {
        "model_id": name,
        "name": name,
        "description": "",
        "can_do_text_to_speech": True,
        "can_be_finetuned": False,
        "can_do_voice_conversion": False,
        "can_use_style": False,
        "can_use_speaker_boost": False,
        "serves_pro_voices": False,
        "token_cost_factor": 1.0,
        "requires_alpha_access": False,
        "maximum_text_length_per_request": most,
        "max_characters_request_free_user": most,
        "max_characters_request_subscribed_user": most,
        "languages": [{"language_id": each, "name": each} for each in info.languages],
    }
