"""Short-lived tokens as ElevenLabs, Deepgram and Cartesia give them to pages.

`server/tokens.py` makes them. Each is accepted wherever any API accepts a key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from realtime_tts.dialects import cartesia_messages, deepgram_messages, elevenlabs_messages
from realtime_tts.dialects.api import Api
from realtime_tts.errors import RequestError
from realtime_tts.server.endpoints import object_in, read_body
from realtime_tts.server.tokens import token_for

ELEVENLABS_PATH = "/v1/single-use-token/"
DEEPGRAM_PATH = "/v1/auth/grant"
CARTESIA_PATH = "/access-token"

_SPEECH = "tts_websocket"
_MOST_BYTES = 4_096
_ELEVENLABS_SECONDS, _DEEPGRAM_SECONDS, _CARTESIA_SECONDS = 900, 30, 60


def routes() -> list[Route]:
    """Return the routes that make tokens."""
    return [
        _route(ELEVENLABS_PATH + "{kind}", elevenlabs_messages.API, _elevenlabs),
        _route(DEEPGRAM_PATH, deepgram_messages.API, _deepgram),
        _route(CARTESIA_PATH, cartesia_messages.API, _cartesia),
    ]


def _route(path: str, api: Api, make: Callable[[Request], Awaitable[dict[str, Any]]]) -> Route:
    async def serve(request: Request) -> Response:
        return JSONResponse(await make(request), headers={"cache-control": "no-store"})

    return Route(path, api.endpoint(serve), methods=["POST"])


async def _elevenlabs(request: Request) -> dict[str, Any]:
    kind = request.path_params["kind"]
    if kind != _SPEECH:
        raise RequestError(f"there are tokens for {_SPEECH} only, found {kind[:40]!r}")
    return {"token": token_for(request, _ELEVENLABS_SECONDS, once=True)}


async def _deepgram(request: Request) -> dict[str, Any]:
    seconds = (await _fields(request)).get("ttl_seconds", _DEEPGRAM_SECONDS)
    return {"access_token": token_for(request, seconds), "expires_in": seconds}


async def _cartesia(request: Request) -> dict[str, Any]:
    seconds = (await _fields(request)).get("expires_in", _CARTESIA_SECONDS)
    return {"token": token_for(request, seconds)}


async def _fields(request: Request) -> dict[str, Any]:
    """Return the fields of the body, if there is one. Raises RequestError."""
    body = await read_body(request, _MOST_BYTES)
    return object_in(body) if body else {}
