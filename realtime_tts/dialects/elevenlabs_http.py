"""ElevenLabs' API over HTTP: `POST /v1/text-to-speech/{voice}` and what is below it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
from collections.abc import AsyncGenerator

from msgspec.structs import replace
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from realtime_tts.audio.encoders import Encoder
from realtime_tts.dialects import elevenlabs_answer as answer
from realtime_tts.dialects.elevenlabs_request import (
    DEFAULT_FORMAT,
    Body,
    check_format,
    our_voice,
    parse_body,
)
from realtime_tts.dialects.formats import open_encoder
from realtime_tts.dialects.http import (
    ClientGone,
    Reply,
    answering,
    check_text,
    client_of,
    new_request_id,
    read_object,
    sounds,
    timed_sounds,
)
from realtime_tts.dialects.languages import our_language
from realtime_tts.dialects.models import our_model
from realtime_tts.dialects.timing import Timed, characters_of
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.server.front import Front
from realtime_tts.server.session_settings import session_defaults, wire_limits
from realtime_tts.server.speech import SpeechError, SpeechStream

log = logging.getLogger(__name__)

_NO_SOUND = b'"audio_base64": ""'
_SOUND_BYTES = 3 * 65_536
"""Of sound in one piece of a long answer; in base64 three bytes end a group."""


def http_routes(front: Front, prefix: str) -> list[BaseRoute]:
    """The routes below `prefix`."""
    voice = prefix + "{voice}"
    return [
        Route(voice, SpeechEndpoint(front)),
        Route(voice + "/stream", SpeechEndpoint(front)),
        Route(voice + "/with-timestamps", SpeechEndpoint(front, times=True, whole=True)),
        Route(voice + "/stream/with-timestamps", SpeechEndpoint(front, times=True)),
    ]


class SpeechEndpoint:
    """Speech for a text that comes whole. `times`: JSON, with its characters; `whole`: in one."""

    def __init__(self, front: Front, *, times: bool = False, whole: bool = False) -> None:
        self._front = front
        self._times = times
        self._whole = whole

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            await answer.wrong_method(scope["method"], "POST")(scope, receive, send)
            return
        reply = Reply(scope, receive, send, new_request_id())
        try:
            self._front.admit()
            await self._speak(Request(scope), receive, reply)
        except ClientGone:
            return
        except (RequestError, ProtocolError) as error:
            await reply.refuse(answer.bad_request(error, reply.request_id))
        except SpeechError as error:
            await reply.refuse(answer.http_error(error.failure, reply.request_id))
        except Exception:
            log.exception("elevenlabs.bug", extra={"fields": {"request": reply.request_id}})
            failure = TurnFailure("internal", "a fault of the server", False)
            await reply.refuse(answer.http_error(failure, reply.request_id))

    async def _speak(self, request: Request, receive: Receive, reply: Reply) -> None:
        body = await self._read(receive)
        name = request.query_params.get("output_format") or DEFAULT_FORMAT
        check_format(name)
        stream = self._open(request, body, reply.request_id)
        async with answering(stream, receive):
            stream.feed(body.text)
            stream.end()
            encoder = open_encoder(name)
            if not self._times:
                await reply.send_all(encoder.media_type, sounds(stream, encoder))
            elif self._whole:
                await reply.send_all("application/json", _whole(stream, encoder))
            else:
                await reply.send_all("application/json", _lines(stream, encoder))

    async def _read(self, receive: Receive) -> Body:
        limits = wire_limits(self._front.config, self._front.engine.info)
        body = parse_body(await read_object(receive, limits))
        check_text("text", body.text, limits)
        return body

    def _open(self, request: Request, body: Body, request_id: str) -> SpeechStream:
        info, limits = self._front.engine.info, self._front.config.limits
        defaults = session_defaults(info, limits.max_lead_seconds)
        voice = our_voice(request.path_params["voice"], self._front.voice_names())
        settings = replace(
            defaults,
            model=our_model(body.model_id, info),
            voice=voice or defaults.voice,
            language=our_language(body.language_code, info),
            seed=body.seed,
        )
        return self._front.open_speech(request_id, settings, client_of(request.scope))


async def _lines(stream: SpeechStream, encoder: Encoder) -> AsyncGenerator[bytes, None]:
    """A JSON object a line: sound, or the characters that it brought."""
    async with contextlib.aclosing(timed_sounds(stream, encoder)) as pieces:
        async for piece, span in pieces:
            if piece or span is not None:
                yield _object(piece, [] if span is None else characters_of(span)) + b"\n"


async def _whole(stream: SpeechStream, encoder: Encoder) -> AsyncGenerator[bytes, None]:
    """One JSON object, when all is spoken."""
    sound, characters = bytearray(), list[Timed]()
    async with contextlib.aclosing(timed_sounds(stream, encoder)) as pieces:
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
