"""Deepgram's API over HTTP: `POST /v1/speak` and `POST /v2/speak`, which are the same here."""

from __future__ import annotations

import logging
import uuid

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from realtime_tts.dialects import deepgram_answer as answer
from realtime_tts.dialects.deepgram_request import http_wanted
from realtime_tts.dialects.http import (
    BodyTooLarge,
    ClientGone,
    Reply,
    answering,
    client_of,
    read_object,
    sounds,
)
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.parsing import ProtocolError, TooLarge
from realtime_tts.server.front import Front
from realtime_tts.server.session_settings import session_defaults, wire_limits
from realtime_tts.server.speech import SpeechError

log = logging.getLogger(__name__)


class SpeechEndpoint:
    """Speech for a text that comes whole; the address says how."""

    def __init__(self, front: Front) -> None:
        self._front = front

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = Reply(scope, receive, send, str(uuid.uuid4()))
        try:
            failure = await self._answer(scope, receive, reply)
        except Exception:
            log.exception("deepgram.bug", extra={"fields": {"request": reply.request_id}})
            failure = TurnFailure("internal", "a fault of the server", False)
        if failure is not None:
            await reply.refuse(answer.http_error(failure, reply.request_id))

    async def _answer(self, scope: Scope, receive: Receive, reply: Reply) -> TurnFailure | None:
        if scope["method"] != "POST":
            message = f"{scope['method']} is not for this path; use POST, or a WebSocket"
            return TurnFailure("method_not_allowed", message, False)
        try:
            self._front.admit()
            await self._speak(Request(scope), receive, reply)
        except ClientGone:
            pass
        except (RequestError, ProtocolError) as error:
            return TurnFailure(error.code, str(error), False)
        except SpeechError as error:
            return error.failure
        return None

    async def _speak(self, request: Request, receive: Receive, reply: Reply) -> None:
        text = await self._read(receive)
        info, limits = self._front.engine.info, self._front.config.limits
        defaults = session_defaults(info, limits.max_lead_seconds)
        wanted = http_wanted(request.query_params, defaults, info, self._front.voice_names())
        client = client_of(request.scope)
        stream = self._front.open_speech(reply.request_id, wanted.settings, client)
        async with answering(stream, receive):
            stream.feed(text)
            stream.end()
            encoder = wanted.open_encoder()
            reply.headers = answer.speech_headers(reply.request_id, wanted, len(text))
            await reply.send_all(encoder.media_type, sounds(stream, encoder))

    async def _read(self, receive: Receive) -> str:
        limits = wire_limits(self._front.config, self._front.engine.info)
        most = limits.max_text_chars
        try:
            body = await read_object(receive, limits)
        except BodyTooLarge as error:
            raise TooLarge(str(error)) from None
        text = body.get("text")
        if not isinstance(text, str) or not text:
            raise RequestError("`text`, the text to speak, must be a string that is not empty")
        if len(text) > most:
            raise TooLarge(f"`text` must have at most {most} characters, it has {len(text)}")
        return text
