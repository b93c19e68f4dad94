"""`/v1/voices`: what the server can speak with, and voices that clients bring.

Bodies are counted while they are read. Forms are parsed only by the voice worker's process.
"""

from __future__ import annotations

import asyncio
from typing import Literal, NotRequired, TypedDict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from realtime_tts.access.account import Account
from realtime_tts.engine.interface import EngineInfo
from realtime_tts.server.auth import account_of
from realtime_tts.server.endpoints import Endpoint, Handler, answered, read_upload
from realtime_tts.server.front import SERVER_NAME, Front
from realtime_tts.voices.errors import (
    BadVoiceRequest,
    BuiltInVoice,
    CannotClone,
    NotAllowed,
    UnknownVoice,
    UnsupportedMedia,
    UploadTooLarge,
    VoiceRequestError,
    not_allowed,
    wrong_length,
)
from realtime_tts.voices.file import VoiceRecord
from realtime_tts.voices.form import MAX_BODY_BYTES, MAX_JSON_BYTES, parse_embedding, too_large
from realtime_tts.voices.library import VoiceLibrary

_BASE = "a Base checkpoint, such as --model Qwen/Qwen3-TTS-12Hz-1.7B-Base"


class Voice(TypedDict):
    """A speaker of a checkpoint, or a registered voice. What only registered voices have is absent
    for speakers; `text` is in the answer for one voice."""

    id: str
    kind: Literal["speaker", "registered"]
    model: str
    language: str | None
    created: str | None
    in_context: NotRequired[bool]
    dimensions: NotRequired[int]
    text: NotRequired[str | None]


class LoadedModel(TypedDict):
    """A checkpoint that the server has loaded. `instructions`: whether it takes them."""

    model: str
    variant: str
    instructions: bool


class VoiceList(TypedDict):
    """What the server can speak with. `model` and `variant` are those of the default checkpoint;
    `clones`: recordings become voices; `random_weights`: it is untrained and speaks noise."""

    server: str
    model: str
    variant: str
    models: list[LoadedModel]
    clones: bool
    random_weights: bool
    voices: list[str]
    details: list[Voice]
    default_voice: str | None
    languages: tuple[str, ...]
    sample_rate: int


def voice_routes() -> list[BaseRoute]:
    """Return the routes; the application's state has the front."""
    one, embedding = "/v1/voices/{id}", "/v1/voices/{id}/embedding"
    return [
        Route("/v1/voices", _answered(_list), methods=["GET"]),
        Route("/v1/voices", _answered(_create), methods=["POST"]),
        Route(one, _answered(_show), methods=["GET"]),
        Route(one, _answered(_delete), methods=["DELETE"]),
        Route(embedding, _answered(_export), methods=["GET"]),
    ]


class NotReadyError(VoiceRequestError, code="not_ready", status=503, retryable=True, retry_after=2):
    """The engine is not ready, or accepts nothing new."""


def _answered(handler: Handler[Front]) -> Endpoint:
    """Return `handler` as an endpoint, which is called once the engine is ready."""

    async def ready(front: Front, request: Request) -> Response:
        if (reason := front.engine.not_ready()) is not None:
            raise NotReadyError(reason)
        return await handler(front, request)

    return answered("voices", ready)


# Reading.


async def _list(front: Front, request: Request) -> Response:
    info = front.engine.info
    account = account_of(request.scope)
    found = [*_speakers(info), *map(_registered, await _records(front))]
    details = [voice for voice in found if account.may_use(voice["id"])]
    answer: VoiceList = {
        "server": SERVER_NAME,
        "model": info.model,
        "variant": info.variant,
        "models": [_model(one) for one in info.all_models],
        "clones": front.voices is not None and info.clones,
        "random_weights": info.random_weights,
        "voices": list(dict.fromkeys(voice["id"] for voice in details)),
        "details": details,
        "default_voice": account.known(info.default_voice),
        "languages": info.languages,
        "sample_rate": info.sample_rate,
    }
    return JSONResponse(answer)


async def _show(front: Front, request: Request) -> Response:
    id = _usable(request)
    for speaker in _speakers(front.engine.info):
        if speaker["id"] == id:
            return JSONResponse(speaker)
    record = await asyncio.to_thread(_library(front, id).registry.get, id)
    shown: Voice = {**_registered(record), "text": record.transcript}
    return JSONResponse(shown)


async def _export(front: Front, request: Request) -> Response:
    """Return a voice as JSON that POST accepts."""
    id = _usable(request)
    _refuse_speaker(front, id, "has no embedding of its own to export")
    registry = _library(front, id).registry
    record = await asyncio.to_thread(registry.get, id)
    embedding = await asyncio.to_thread(registry.embedding, id)
    given = {"model": record.model, "language": record.language}
    known = {name: value for name, value in given.items() if value}
    return JSONResponse({"name": id, **known, "embedding": embedding.tolist()})


# Writing.


async def _create(front: Front, request: Request) -> Response:
    library, info = front.voices, front.engine.info
    account = account_of(request.scope)
    if not account.registers:
        raise NotAllowed("this key may not register voices")
    if library is None:
        raise CannotClone("this server keeps no voices: start it with --voices-dir FOLDER")
    if front.draining:
        raise NotReadyError("the server is shutting down; try another")
    if not info.clones:
        raise CannotClone(
            f"{info.model} is a {info.variant} checkpoint, which has no voices but its own; "
            f"cloning needs {_BASE}"
        )
    content_type = request.headers.get("content-type", "")
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        async with library.place() as worker:
            body = await read_upload(request, MAX_BODY_BYTES, too_large)
            record = await library.clone(
                worker, body, content_type, info.voices, lambda: account.registers
            )
    elif kind == "application/json":
        body = await read_upload(request, MAX_JSON_BYTES, _too_large_json)
        asked, embedding = parse_embedding(b"".join(body))
        _check_name(account, asked.name)
        model = asked.model or info.voice_family or info.model
        _check_length(info, asked.name, model, len(embedding))
        record = await library.register(
            asked.name,
            embedding,
            model=model,
            language=asked.language,
            reserved=info.voices,
        )
    else:
        raise UnsupportedMedia(
            "send multipart/form-data with a recording, or application/json with an embedding; "
            f"found {kind[:80] or 'no Content-Type'!r}"
        )
    location = {"location": f"/v1/voices/{record.id}"}
    return JSONResponse(_registered(record), status_code=201, headers=location)


async def _delete(front: Front, request: Request) -> Response:
    id = request.path_params["id"]
    _refuse_speaker(front, id, "belongs to the checkpoint and cannot be deleted")
    _check_name(account_of(request.scope), id)
    await asyncio.to_thread(_library(front, id).registry.delete, id)
    return Response(status_code=204)


def _too_large_json(found: str) -> UploadTooLarge:
    return UploadTooLarge(f"an embedding as JSON may have {MAX_JSON_BYTES} bytes, found {found}")


# What a key is for.


def _check_name(account: Account, name: str) -> None:
    if not account.may_register(name):
        raise not_allowed(name)


def _check_length(info: EngineInfo, name: str, model: str, found: int) -> None:
    """Refuse an embedding that none of the loaded checkpoints of its model could speak. Of other
    models nothing is known: the voice may be for another server with the same folder."""
    for one in info.all_models:
        if one.clones and one.voice_family == model and one.voice_numbers not in (0, found):
            raise BadVoiceRequest(wrong_length(name, model, found, model, one.voice_numbers))


def _usable(request: Request) -> str:
    """Return the voice in the path. One that the key may not use counts as unknown."""
    id: str = request.path_params["id"]
    if not account_of(request.scope).may_use(id):
        raise UnknownVoice(f"no voice {id[:80]!r}; GET /v1/voices lists those there are")
    return id


# What is there.


def _library(front: Front, id: str) -> VoiceLibrary:
    if front.voices is None:
        raise UnknownVoice(f"no voice {id[:80]!r}; GET /v1/voices lists those there are")
    return front.voices


async def _records(front: Front) -> list[VoiceRecord]:
    """Return the registered voices that a loaded checkpoint may speak with."""
    if front.voices is None or not front.engine.info.clones:
        return []
    return await asyncio.to_thread(front.voices.registry.voices)


def _refuse_speaker(front: Front, id: str, why: str) -> None:
    if id in front.engine.info.voices:
        raise BuiltInVoice(f"the speaker {id!r} {why}")


def _speakers(info: EngineInfo) -> list[Voice]:
    return [
        {"id": name, "kind": "speaker", "model": one.model, "language": None, "created": None}
        for one in info.all_models
        for name in one.voices
    ]


def _model(info: EngineInfo) -> LoadedModel:
    return {"model": info.model, "variant": info.variant, "instructions": info.instructions}


def _registered(record: VoiceRecord) -> Voice:
    return {
        "id": record.id,
        "kind": "registered",
        "model": record.model,
        "language": record.language,
        "created": record.created,
        "in_context": record.in_context,
        "dimensions": record.dimensions,
    }
