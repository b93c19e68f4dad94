"""OpenAI's speech API: `POST /v1/audio/speech` and `GET /v1/models`, for clients that speak it.

docs/dialects.md says what is taken and what is not. The answer begins with the first sound, so that
until then every refusal has its own status; what fails later cuts the connection, or is an `error`
event where the client asked for events.
"""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from realtime_tts.audio.encoders import Encoder, require
from realtime_tts.audio.formats import parse_format
from realtime_tts.dialects.http import (
    EVENTS,
    BodyTooLarge,
    ClientGone,
    Reply,
    answering,
    client_of,
    most_body_bytes,
    new_request_id,
    read_body,
    sounds,
)
from realtime_tts.dialects.models import model_names, our_model
from realtime_tts.dialects.openai_answer import (
    ApiError,
    deny,
    event_bytes,
    fail,
    from_failure,
)
from realtime_tts.dialects.openai_request import (
    BadRequest,
    SpeechRequest,
    our_voice,
    parse_request,
    usage,
)
from realtime_tts.errors import RequestError
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.front import Front
from realtime_tts.server.session_settings import session_defaults, wire_limits
from realtime_tts.server.speech import SpeechError, SpeechStream

log = logging.getLogger(__name__)

__all__ = ["MODELS_PATH", "SPEECH_PATH", "deny", "routes"]

SPEECH_PATH = "/v1/audio/speech"
MODELS_PATH = "/v1/models"


def routes(front: Front) -> list[Route]:
    """The routes of this API."""
    return [
        Route(SPEECH_PATH, SpeechEndpoint(front)),
        Route(MODELS_PATH, ModelsEndpoint(front)),
        Route(MODELS_PATH + "/{model:path}", ModelsEndpoint(front)),
    ]


class ModelsEndpoint:
    """`GET /v1/models` and `/v1/models/{id}`: what is loaded."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._created = int(time.time())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = new_request_id()
        try:
            _only(scope, "GET", "HEAD")
            body = self._answer(Request(scope).path_params.get("model"))
            response: Response = JSONResponse(body, headers={"x-request-id": request_id})
        except ApiError as error:
            response = error.response(request_id)
        await response(scope, receive, send)

    def _answer(self, asked: str | None) -> dict[str, Any]:
        _ready(self._front)
        names = model_names(self._front.engine.info)
        if asked is None:
            return {"object": "list", "data": [self._model(name) for name in names]}
        if asked not in names:
            known = ", ".join(map(repr, names))
            message = f"the model {asked[:80]!r} does not exist; this server has {known}"
            raise ApiError(404, message, param="model", code="model_not_found")
        return self._model(asked)

    def _model(self, name: str) -> dict[str, Any]:
        return {
            "id": name, "object": "model", "created": self._created, "owned_by": "realtime-tts",
        }  # fmt: skip


class SpeechEndpoint:
    """`POST /v1/audio/speech`."""

    def __init__(self, front: Front) -> None:
        self._front = front

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = Reply(scope, receive, send, new_request_id())
        try:
            _only(scope, "POST")
            await self._speak(scope, receive, reply)
        except ClientGone:
            return
        except ApiError as error:
            await fail(reply, error)
        except SpeechError as error:
            await fail(reply, from_failure(error.failure))
        except Exception:
            log.exception("openai.bug", extra={"fields": {"request": reply.request_id}})
            await fail(reply, ApiError(500, "a fault of the server", code="internal"))

    async def _speak(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        _ready(self._front)
        request = await self._read(receive)
        try:
            audio_format = parse_format(request.response_format)
            require(audio_format)
        except RequestError as error:
            raise ApiError(400, str(error), param="response_format") from None
        stream = self._open(request, scope, reply.request_id)
        async with answering(stream, receive):
            stream.feed(request.input)
            stream.end()
            encoder = Encoder(audio_format)
            if request.stream_format == "sse":
                await reply.send_all(EVENTS, self._events(stream, encoder))
            else:
                await reply.send_all(audio_format.media_type, sounds(stream, encoder))

    async def _read(self, receive: Receive) -> SpeechRequest:
        limits = wire_limits(self._front.config, self._front.engine.info)
        chars = limits.max_text_chars + limits.max_instructions_chars
        max_bytes = most_body_bytes(chars, limits)
        try:
            return parse_request(await read_body(receive, max_bytes), limits)
        except BodyTooLarge as error:
            message = f"{error}, and `input` at most {limits.max_text_chars} characters"
            raise ApiError(413, message, code="request_too_large") from None
        except BadRequest as error:
            raise ApiError(400, str(error), param=error.param, code=error.reason) from None

    def _open(self, request: SpeechRequest, scope: Scope, request_id: str) -> SpeechStream:
        client = client_of(scope)
        self._front.admit()
        try:
            settings = self._settings(request)
            try:
                return self._front.open_speech(request_id, settings, client)
            except RequestError:
                if settings.instructions is None:
                    raise
                # A checkpoint that takes no instructions speaks without them, as `tts-1` does.
                plain = replace(settings, instructions=None)
                return self._front.open_speech(request_id, plain, client)
        except BadRequest as error:
            raise ApiError(400, str(error), param=error.param, code=error.reason) from None
        except RequestError as error:
            raise ApiError(400, str(error)) from None

    def _settings(self, request: SpeechRequest) -> SessionSettings:
        """What is not given: the checkpoint's defaults, and the longest lead.

        Most clients of this API play a file when it is complete; the lead is as far as speech may
        be faster than its listener.
        """
        info, limits = self._front.engine.info, self._front.config.limits
        defaults = session_defaults(info, limits.max_lead_seconds)
        return replace(
            defaults,
            model=our_model(request.model, info),
            voice=our_voice(request.voice_name, self._front.voice_names()) or defaults.voice,
            language=request.language,
            instructions=request.instructions or None,
            seed=request.seed,
            lead_ms=request.lead_ms or defaults.lead_ms,
        )

    async def _events(self, stream: SpeechStream, encoder: Encoder) -> AsyncGenerator[bytes, None]:
        """Server-sent events: the sound in base64, and at the end what it took."""
        async with aclosing(sounds(stream, encoder)) as pieces:
            async for piece in pieces:
                audio = base64.b64encode(piece).decode()
                yield event_bytes({"type": "speech.audio.delta", "audio": audio}) if piece else b""
        per_frame = self._front.engine.info.samples_per_frame
        yield event_bytes(
            {
                "type": "speech.audio.done",
                "usage": usage(stream.text_tokens, stream.samples, per_frame),
                "reason": stream.reason,
            }
        )


def _ready(front: Front) -> None:
    reason = front.not_ready()
    if reason is not None:
        raise ApiError(503, reason, code="not_ready", retry_after_ms=2_000)


def _only(scope: Scope, *methods: str) -> None:
    if scope["method"] not in methods:
        message = f"{scope['method']} is not allowed here; use {methods[0]}"
        raise ApiError(405, message, headers={"allow": ", ".join(methods)})
