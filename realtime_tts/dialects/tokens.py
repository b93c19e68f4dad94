"""Short-lived tokens as ElevenLabs, Deepgram and Cartesia give them to pages.

`server/tokens.py` makes them. Each is taken wherever its API takes a key, and by the others as
well: what differs is how a client asks for one.
"""

from __future__ import annotations

import uuid
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from realtime_tts.dialects import cartesia_answer, deepgram_answer, elevenlabs_answer
from realtime_tts.dialects.http import ClientGone, new_request_id, read_body
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.parsing import ProtocolError, load_object
from realtime_tts.server.tokens import token_for

ELEVENLABS_PATH = "/v1/single-use-token/"
DEEPGRAM_PATH = "/v1/auth/grant"
CARTESIA_PATH = "/access-token"

_SPEECH = "tts_websocket"
_MOST_BYTES = 4_096
_ELEVENLABS_SECONDS, _DEEPGRAM_SECONDS, _CARTESIA_SECONDS = 900, 30, 60
_NOT_STORED = {"cache-control": "no-store"}


def routes() -> list[Route]:
    """The routes that give them."""
    return [
        Route(ELEVENLABS_PATH + "{kind}", _elevenlabs, methods=["POST"]),
        Route(DEEPGRAM_PATH, _deepgram, methods=["POST"]),
        Route(CARTESIA_PATH, _cartesia, methods=["POST"]),
    ]


async def _elevenlabs(request: Request) -> Response:
    kind = request.path_params["kind"]
    try:
        if kind != _SPEECH:
            raise RequestError(f"there are tokens for {_SPEECH} only, found {kind[:40]!r}")
        token = token_for(request, _ELEVENLABS_SECONDS, once=True)
    except RequestError as error:
        return elevenlabs_answer.bad_request(error, new_request_id())
    return JSONResponse({"token": token}, headers=_NOT_STORED)


async def _deepgram(request: Request) -> Response:
    try:
        seconds = (await _fields(request)).get("ttl_seconds", _DEEPGRAM_SECONDS)
        token = token_for(request, seconds)
    except (RequestError, ProtocolError) as error:
        failure = TurnFailure("bad_request", str(error), False)
        return deepgram_answer.http_error(failure, str(uuid.uuid4()))
    return JSONResponse({"access_token": token, "expires_in": seconds}, headers=_NOT_STORED)


async def _cartesia(request: Request) -> Response:
    try:
        seconds = (await _fields(request)).get("expires_in", _CARTESIA_SECONDS)
        token = token_for(request, seconds)
    except (RequestError, ProtocolError) as error:
        failure = TurnFailure("bad_request", str(error), False)
        return cartesia_answer.http_error(failure, "")
    return JSONResponse({"token": token}, headers=_NOT_STORED)


async def _fields(request: Request) -> dict[str, Any]:
    """Of the body, if there is one. Raises RequestError and ProtocolError."""
    try:
        body = await read_body(request.receive, _MOST_BYTES)
    except ClientGone:
        return {}  # nobody hears the answer
    fields = load_object(body.decode(errors="replace")) if body else {}
    return {name: value for name, value in fields.items() if value is not None}
