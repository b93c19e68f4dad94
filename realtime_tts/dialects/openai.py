"""OpenAI's speech API: `POST /v1/audio/speech` and lists, for clients that speak it.

docs/dialects.md says what is taken and what is not. The answer begins with the first sound, so that
until then every refusal has its own status; what fails later cuts the connection, or is an `error`
event where the client asked for events.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import time
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Any

from msgspec import structs
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from realtime_tts.dialects.catalogue import model_for, model_names
from realtime_tts.dialects.fields import WrongField
from realtime_tts.dialects.http import (
    EVENTS,
    BodyTooLarge,
    most_body_bytes,
    new_request_id,
    read_body,
    sounds,
)
from realtime_tts.dialects.openai_request import (
    BadRequest,
    SpeechRequest,
    format_of,
    our_voice,
    parse_request,
    usage,
)
from realtime_tts.dialects.refusals import OVERLOADS, not_ready, retry_after
from realtime_tts.dialects.speech_endpoint import Order, Pieces, SpeechEndpoint
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.auth import send_instead
from realtime_tts.server.front import Front
from realtime_tts.server.speech import Speech

__all__ = ["AUDIO_PATHS", "MODELS_PATH", "deny", "routes"]

AUDIO_PATHS = "/v1/audio/"
MODELS_PATH = "/v1/models"


def routes(front: Front) -> list[Route]:
    """The routes of this API."""
    models = partial(_models, int(time.time()))
    return [
        Route(AUDIO_PATHS + "speech", OpenAISpeech(front)),
        Route(AUDIO_PATHS + "voices", ListEndpoint(front, _audio_voices)),
        Route(AUDIO_PATHS + "models", ListEndpoint(front, _audio_models)),
        Route(MODELS_PATH, ListEndpoint(front, models)),
        Route(MODELS_PATH + "/{model:path}", ListEndpoint(front, models)),
    ]


class ListEndpoint:
    """A `GET` of what is loaded. `answer` has the front and the address's `model`, if it names
    one."""

    def __init__(self, front: Front, answer: Callable[[Front, str | None], dict[str, Any]]) -> None:
        self._front = front
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = new_request_id()
        try:
            if scope["method"] not in ("GET", "HEAD"):
                raise wrong_method(scope["method"], "GET", "HEAD")
            failure = not_ready(self._front)
            if failure is not None:
                raise from_failure(failure)
            body = self._answer(self._front, Request(scope).path_params.get("model"))
            response: Response = JSONResponse(body, headers={"x-request-id": request_id})
        except ApiError as error:
            response = error.response(request_id)
        await response(scope, receive, send)


def _models(created: int, front: Front, asked: str | None) -> dict[str, Any]:
    names = model_names(front.info)
    shared = {"object": "model", "created": created, "owned_by": "realtime-tts"}
    if asked is None:
        return {"object": "list", "data": [{"id": name, **shared} for name in names]}
    if asked not in names:
        known = ", ".join(map(repr, names))
        message = f"the model {asked[:80]!r} does not exist; this server has {known}"
        raise ApiError(404, message, param="model", code="model_not_found")
    return {"id": asked, **shared}


def _audio_voices(front: Front, _: str | None) -> dict[str, Any]:
    """Open WebUI needs both fields; OpenReader asks for speech with the name."""
    return {"voices": [{"id": name, "name": name} for name in front.voice_names()]}


def _audio_models(front: Front, _: str | None) -> dict[str, Any]:
    return {"models": [{"id": name} for name in model_names(front.info)]}


class OpenAISpeech(SpeechEndpoint):
    """`POST /v1/audio/speech`."""

    api = "openai"
    cuts_events = True  # LiveKit's client knows no event `error`, but it sees that

    async def order(self, request: Request, request_id: str) -> Order:
        asked = await self._read(request.receive)
        order = Order(asked.input, self._settings(asked), other_speed=asked.speed != 1)
        if asked.stream_format != "sse":
            return order
        return dataclasses.replace(order, media_type=EVENTS, pieces=self._events)

    async def _read(self, receive: Receive) -> SpeechRequest:
        limits = self.limits
        chars = limits.max_text_chars + limits.max_instructions_chars
        try:
            body = await read_body(receive, most_body_bytes(chars, limits))
        except BodyTooLarge as error:
            message = f"{error}, and `input` at most {limits.max_text_chars} characters"
            raise BadRequest(message, code="request_too_large", status=413) from None
        return parse_request(body, limits)

    def _settings(self, asked: SpeechRequest) -> SessionSettings:
        voice = our_voice(asked.voice_name, self.front.voice_names())
        settings = self.front.settings(
            longest_lead=True,
            audio=format_of(asked),
            model=model_for(asked.task_type, asked.model, voice, self.front.info),
            voice=voice,
            language=asked.language,
            instructions=asked.instructions or None,
            seed=asked.seed,
            lead_ms=asked.lead_ms,
        )
        try:
            self.front.check_speech(settings)
        except RequestError:
            # A checkpoint that takes no instructions speaks without them, as `tts-1` does.
            return structs.replace(settings, instructions=None)
        return settings

    async def _events(self, speech: Speech) -> Pieces:
        """Server-sent events: the sound in base64, and at the end what it took."""
        async with aclosing(sounds(speech)) as pieces:
            async for piece in pieces:
                audio = base64.b64encode(piece).decode()
                yield event_bytes({"type": "speech.audio.delta", "audio": audio}) if piece else b""
        spoken, per_frame = speech.last, self.front.info.samples_per_frame
        yield event_bytes(
            {
                "type": "speech.audio.done",
                "usage": usage(spoken.text_tokens, spoken.samples, per_frame),
                "reason": spoken.reason,
            }
        )

    def wrong_method(self, method: str, request_id: str) -> Response:
        return wrong_method(method, "POST").response(request_id)

    def unfit(self, problem: RequestError | ProtocolError, request_id: str) -> Response:
        return from_problem(problem).response(request_id)

    def failed(self, failure: TurnFailure, request_id: str) -> Response:
        return from_failure(failure).response(request_id)

    def failed_event(self, failure: TurnFailure, request_id: str) -> bytes:
        return event_bytes({"type": "error", **from_failure(failure).body})


class ApiError(Exception):
    """What the client is told instead of speech, in OpenAI's words."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        self.body = {
            "error": {"message": message, "type": _kind(status), "param": param, "code": code}
        }

    def response(self, request_id: str) -> Response:
        """The error as an answer over HTTP."""
        headers = {**self.headers, "x-request-id": request_id}
        return JSONResponse(self.body, self.status, headers)


def _kind(status: int) -> str:
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"


def from_problem(problem: RequestError | ProtocolError) -> ApiError:
    """What is wrong with a request."""
    if isinstance(problem, BadRequest):
        status, param, code = problem.status, problem.param, problem.reason
        return ApiError(status, str(problem), param=param, code=code)
    return ApiError(
        400, str(problem), param=problem.field if isinstance(problem, WrongField) else None
    )


def from_failure(failure: TurnFailure) -> ApiError:
    """429 where others are in the way, 503 where another try may help, else 500."""
    busy = failure.code in OVERLOADS
    status = 429 if busy else 503 if failure.retryable else 500
    return ApiError(status, failure.message, code=failure.code, headers=retry_after(failure))


def wrong_method(found: str, *allowed: str) -> ApiError:
    """405, for a path that takes other methods."""
    message = f"{found} is not allowed here; use {allowed[0]}"
    return ApiError(405, message, headers={"allow": ", ".join(allowed)})


async def deny(scope: Scope, send: Send, status: int, code: str, message: str) -> None:
    """The gate's no, in this API's shape."""
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    code = "invalid_api_key" if status == 401 else code
    error = ApiError(status, message, code=code, headers=headers)
    await send_instead(error.response(new_request_id()), scope, send)


def event_bytes(data: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(data).encode() + b"\n\n"
