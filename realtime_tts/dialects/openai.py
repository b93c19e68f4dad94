"""OpenAI's speech API: `POST /v1/audio/speech` and lists.

docs/dialects.md says what is supported.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import time
from contextlib import aclosing
from functools import partial
from typing import Any, Literal, TypedDict

from msgspec import structs
from starlette.requests import Request
from starlette.routing import Route

from realtime_tts.access.account import Account
from realtime_tts.dialects.api import Api, ListEndpoint, Refusal
from realtime_tts.dialects.catalogue import model_for, model_names
from realtime_tts.dialects.fields import WrongField
from realtime_tts.dialects.openai_request import (
    SpeechRequest,
    format_of,
    our_voice,
    parse_request,
    usage,
)
from realtime_tts.dialects.speech_endpoint import (
    EVENTS,
    Order,
    Pieces,
    SpeechEndpoint,
    most_body_bytes,
    sounds,
)
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.auth import account_of
from realtime_tts.server.endpoints import BodyTooLarge, read_body
from realtime_tts.server.front import Front
from realtime_tts.server.speech import Speech

AUDIO_PATHS = "/v1/audio/"
MODELS_PATH = "/v1/models"


class Problem(TypedDict):
    """Why a request was not done. `param`: the field at fault, if that is known."""

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "server_error"]
    param: str | None
    code: str | None


class ProblemBody(TypedDict):
    """An error as OpenAI sends it."""

    error: Problem


class Model(TypedDict):
    """A loaded checkpoint, or a model that requests may name."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(TypedDict):
    """The models."""

    object: Literal["list"]
    data: list[Model]


class AudioVoice(TypedDict):
    """A voice; both fields hold its name."""

    id: str
    name: str


class AudioVoices(TypedDict):
    """The voices that requests may name."""

    voices: list[AudioVoice]


class AudioModel(TypedDict):
    """A model's name."""

    id: str


class AudioModels(TypedDict):
    """The models that requests may name."""

    models: list[AudioModel]


class OpenAI(Api):
    name = "openai"
    permanent = 500
    denials = {401: "invalid_api_key"}
    codes = {"key_limit_reached": (429, "rate_limit_exceeded")}
    method_code = None
    method_hint = "{} is not allowed here; use {}"

    def of_problem(self, problem: RequestError | ProtocolError) -> Refusal:
        if isinstance(problem, WrongField):
            return Refusal(problem.status, problem.reason, str(problem), problem.field or None)
        field = problem.field if isinstance(problem, RequestError) else ""
        return Refusal(400, None, str(problem), field or None)

    def body(self, refusal: Refusal, request_id: str) -> dict[str, Any]:
        error: Problem = {
            "message": refusal.message,
            "type": _type_of(refusal.status),
            "param": refusal.param,
            "code": refusal.code,
        }
        return {"error": error}


def _type_of(status: int) -> Literal["invalid_request_error", "rate_limit_error", "server_error"]:
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"


API = OpenAI()


def routes(front: Front) -> list[Route]:
    models = partial(_models, int(time.time()))
    return [
        Route(AUDIO_PATHS + "speech", OpenAISpeech(front)),
        Route(AUDIO_PATHS + "voices", ListEndpoint(API, front, _audio_voices)),
        Route(AUDIO_PATHS + "models", ListEndpoint(API, front, _audio_models)),
        Route(MODELS_PATH, ListEndpoint(API, front, models)),
        Route(MODELS_PATH + "/{model:path}", ListEndpoint(API, front, models)),
    ]


def _models(created: int, front: Front, request: Request) -> Model | ModelList | Refusal:
    names, asked = model_names(front.info), request.path_params.get("model")

    def model(name: str) -> Model:
        return {"id": name, "object": "model", "created": created, "owned_by": "realtime-tts"}

    if not asked:  # some clients end the address of the list with a slash
        return {"object": "list", "data": [model(name) for name in names]}
    if asked not in names:
        known = ", ".join(map(repr, names))
        message = f"the model {asked[:80]!r} does not exist; this server has {known}"
        return Refusal(404, "model_not_found", message, "model")
    return model(asked)


def _audio_voices(front: Front, request: Request) -> AudioVoices:
    """Return the voices. Open WebUI needs both fields; OpenReader asks for speech by the name."""
    names = front.voice_names(account_of(request.scope))
    return {"voices": [{"id": name, "name": name} for name in names]}


def _audio_models(front: Front, _: Request) -> AudioModels:
    return {"models": [{"id": name} for name in model_names(front.info)]}


class OpenAISpeech(SpeechEndpoint):
    """The endpoint `POST /v1/audio/speech`."""

    api = API
    cuts_events = True  # LiveKit's client ignores an event `error`, but sees the cut

    async def order(self, request: Request, request_id: str) -> Order:
        asked = await self._read(request)
        settings = self._settings(asked, account_of(request.scope))
        order = Order(asked.input, settings, warning=asked.our_speed.warning)
        if asked.stream_format != "sse":
            return order
        return dataclasses.replace(order, media_type=EVENTS, pieces=self._events)

    async def _read(self, request: Request) -> SpeechRequest:
        limits = self.front.limits
        chars = limits.max_text_chars + limits.max_instructions_chars
        try:
            body = await read_body(request, most_body_bytes(chars, limits))
        except BodyTooLarge as error:
            message = f"{error}, and `input` at most {limits.max_text_chars} characters"
            raise WrongField(message, reason="request_too_large", status=413) from None
        return parse_request(body, limits)

    def _settings(self, asked: SpeechRequest, account: Account) -> SessionSettings:
        voice = our_voice(asked.voice_name, self.front.voice_names(account))
        settings = self.front.settings(
            longest_lead=True,
            audio=format_of(asked),
            model=model_for(asked.task_type, asked.model, voice, self.front.info),
            voice=voice,
            language=asked.language,
            instructions=asked.instructions or None,
            seed=asked.seed,
            speed=asked.our_speed.given,
            lead_ms=asked.lead_ms,
        )
        try:
            self.front.check_speech(settings)
        except RequestError:
            # A checkpoint that takes no instructions speaks without them, as `tts-1` does.
            return structs.replace(settings, instructions=None)
        return settings

    async def _events(self, speech: Speech) -> Pieces:
        """Yield server-sent events: the sound in base64, and at the end the usage."""
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

    def failed_event(self, failure: TurnFailure, request_id: str) -> bytes:
        return event_bytes({"type": "error", **API.body(API.of_failure(failure), request_id)})


def event_bytes(data: dict[str, Any]) -> bytes:
    """Return one server-sent event."""
    return b"data: " + json.dumps(data).encode() + b"\n\n"
