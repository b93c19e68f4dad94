"""ElevenLabs' API over HTTP: `POST /v1/text-to-speech/{voice}` and what is below it."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import aclosing
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from realtime_tts.dialects import elevenlabs_answer as answer
from realtime_tts.dialects.catalogue import our_language, our_model
from realtime_tts.dialects.elevenlabs_request import (
    DEFAULT_FORMAT,
    audio_of,
    our_voice,
    parse_body,
)
from realtime_tts.dialects.http import check_text, read_object, timed_sounds
from realtime_tts.dialects.speech_endpoint import Order, Pieces, SpeechEndpoint
from realtime_tts.dialects.timing import Timed, characters_of
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.server.front import Front
from realtime_tts.server.speech import Speech

_NO_SOUND = b'"audio_base64": ""'
_SOUND_BYTES = 3 * 65_536
"""Of sound in one piece of a long answer; in base64 three bytes end a group."""


def http_routes(front: Front, prefix: str) -> list[BaseRoute]:
    """The routes below `prefix`."""
    voice = prefix + "{voice}"
    return [
        Route(voice, ElevenLabsSpeech(front)),
        Route(voice + "/stream", ElevenLabsSpeech(front)),
        Route(voice + "/with-timestamps", ElevenLabsSpeech(front, times=True, whole=True)),
        Route(voice + "/stream/with-timestamps", ElevenLabsSpeech(front, times=True)),
    ]


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
        settings = self.settings(
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
