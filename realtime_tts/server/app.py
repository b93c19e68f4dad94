"""The ASGI application: routes, health, and the gate in front of them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from functools import partial
from importlib import resources
from urllib.parse import quote

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Match, Route, WebSocketRoute
from starlette.websockets import WebSocket

from realtime_tts.background import repeat
from realtime_tts.config import ServerConfig
from realtime_tts.dialects import (
    cartesia,
    dashscope,
    deepgram,
    elevenlabs,
    openai,
    tokens,
    vllm_omni,
)
from realtime_tts.dialects.cartesia_dictionaries import (
    DICTIONARIES_PATH as CARTESIA_DICTIONARIES,
)
from realtime_tts.dialects.cartesia_messages import API as CARTESIA
from realtime_tts.dialects.dashscope_messages import API as DASHSCOPE
from realtime_tts.dialects.deepgram_messages import API as DEEPGRAM
from realtime_tts.dialects.elevenlabs_dictionaries import (
    DICTIONARIES_PATH as ELEVENLABS_DICTIONARIES,
)
from realtime_tts.dialects.elevenlabs_messages import API as ELEVENLABS
from realtime_tts.dialects.elevenlabs_messages import deny_or
from realtime_tts.loopback import is_loopback
from realtime_tts.metrics import Metrics
from realtime_tts.server.auth import OPEN_PATHS, Gate, PathRule
from realtime_tts.server.connection import Connection
from realtime_tts.server.denials import error_response, send_denial
from realtime_tts.server.engine_host import EngineHost
from realtime_tts.server.front import Front
from realtime_tts.server.lexicons import LEXICONS_PATH, lexicon_routes
from realtime_tts.server.openapi_page import reference_routes
from realtime_tts.server.static import client_files, file_route, static_routes
from realtime_tts.server.tokens import TOKEN_PATH, token_route
from realtime_tts.server.usage import USAGE_PATH, usage_routes
from realtime_tts.server.voices import voice_routes

_LAG_PROBE_SECONDS = 0.1
_READING, _NONE = frozenset({"GET", "HEAD"}), frozenset[str]()
"""Methods that short-lived tokens may use besides speech: pages list voices, but make no voices or
tokens."""


def create_app(front: Front) -> Starlette:
    """Return the application for `front`. Its lifespan starts and stops the engine."""
    page = _page_routes()
    gate = _gate(front, open_paths=OPEN_PATHS | {route.path for route in page})
    app = Starlette(
        routes=[*page, *_routes(front)],
        middleware=[*_traced(front), *_cors(front.config), gate],
        exception_handlers={404: _no_such_path, 405: _wrong_method},
        lifespan=_lifespan,
    )
    app.router.redirect_slashes = False  # `_no_such_path` does it
    app.state.front = front
    app.middleware_stack = app.build_middleware_stack()  # now: a reload must find the gate
    return app


def _routes(front: Front) -> list[BaseRoute]:
    return [
        Connection.route(front, "/v1/tts"),
        Route("/v1/tts", _upgrade_required),
        *elevenlabs.routes(front),
        *voice_routes(),
        *lexicon_routes(),
        *openai.routes(front),
        *cartesia.routes(front),
        *dashscope.routes(front),
        *vllm_omni.routes(front),
        *deepgram.routes(front),
        *tokens.routes(),
        token_route(),
        Route("/livez", _livez),
        Route("/readyz", _readyz),
        Route("/health", _readyz),
        Route("/metrics", _metrics),
        Route("/v1/load", _load),
        *usage_routes(front),
        WebSocketRoute("/{path:path}", _no_such_socket),
    ]


def _gate(front: Front, open_paths: frozenset[str]) -> Middleware:
    """Return the gate: who may ask for what, and how each API denies a request."""
    config = front.config
    return Middleware(
        Gate,
        api_keys=config.api_keys,
        allowed_origins=config.allowed_origins,
        loopback=is_loopback(config.host),
        open_paths=open_paths,
        metrics=front.metrics,
        addresses=front.addresses,
        used_tokens=front.used_tokens,
        access=front.access,
        reloads=front.reloads,
        rules={
            openai.AUDIO_PATHS: PathRule(openai.API.deny),
            openai.MODELS_PATH: PathRule(deny_or(openai.API.deny)),
            elevenlabs.SPEECH_PATH: PathRule(ELEVENLABS.deny, elevenlabs.QUERY_KEYS, late_key=True),
            elevenlabs.DIALOGUE_PATH: PathRule(ELEVENLABS.deny),
            elevenlabs.VOICES_2_PATH: PathRule(ELEVENLABS.deny),
            "/v1/voices": PathRule(deny_or(send_denial), token_methods=_READING),
            LEXICONS_PATH: PathRule(send_denial, token_methods=_READING, open_methods=_READING),
            ELEVENLABS_DICTIONARIES: PathRule(
                ELEVENLABS.deny, token_methods=_READING, open_methods=_READING
            ),
            CARTESIA_DICTIONARIES: PathRule(
                CARTESIA.deny, cartesia.QUERY_KEYS, token_methods=_READING, open_methods=_READING
            ),
            "/tts/": PathRule(CARTESIA.deny, cartesia.QUERY_KEYS),
            "/voices": PathRule(CARTESIA.deny, cartesia.QUERY_KEYS),
            dashscope.SOCKET_PATH: PathRule(DASHSCOPE.deny),
            deepgram.SPEAK_PATH: PathRule(DEEPGRAM.deny),
            deepgram.FLUX_PATH: PathRule(DEEPGRAM.deny),
            tokens.ELEVENLABS_PATH: PathRule(ELEVENLABS.deny, token_methods=_NONE),
            tokens.DEEPGRAM_PATH: PathRule(DEEPGRAM.deny, token_methods=_NONE),
            tokens.CARTESIA_PATH: PathRule(CARTESIA.deny, token_methods=_NONE),
            TOKEN_PATH: PathRule(send_denial, token_methods=_NONE),
            USAGE_PATH: PathRule(send_denial, token_methods=_NONE),
            "/metrics": PathRule(send_denial, token_methods=_NONE, open_methods=_NONE),
            "/v1/load": PathRule(send_denial, token_methods=_NONE, open_methods=_NONE),
        },
    )


@contextlib.asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    front: Front = app.state.front
    if front.voices is not None:
        await front.voices.start()  # reads every file, only here
    await front.engine.start()
    probe = repeat("lag_probe", 0.0, partial(_probe_lag, front.metrics))
    probing = asyncio.create_task(probe, name="lag-probe")
    access = contextlib.nullcontext() if front.access is None else front.access.running()
    try:
        async with access:
            yield
    finally:
        probing.cancel()
        if front.voices is not None:
            await front.voices.stop()
        await front.engine.stop()
        if front.tracer is not None:
            await asyncio.to_thread(front.tracer.close)


async def _probe_lag(metrics: Metrics) -> None:
    """Measure how late the event loop wakes a timer: every packet waits about as long."""
    due = time.monotonic() + _LAG_PROBE_SECONDS
    await asyncio.sleep(_LAG_PROBE_SECONDS)
    metrics.loop_lag.observe(max(0.0, time.monotonic() - due))


def _traced(front: Front) -> list[Middleware]:
    """Return what gives a refused request a span; nothing if turns are not traced."""
    if front.tracer is None:
        return []
    from realtime_tts.tracing.refused import RefusedRequests

    return [Middleware(RefusedRequests, tracer=front.tracer)]


def _cors(config: ServerConfig) -> list[Middleware]:
    """Return what lets pages of the allowed origins read answers. It stands before the gate,
    because preflights carry no key, and because a page must also read why it was refused."""
    if not config.allowed_origins:
        return []
    origins = [origin.lower() for origin in config.allowed_origins]
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["*"],
            expose_headers=["*"],
        )
    ]


def _page_routes() -> list[Route]:
    """Return the routes of the demo page at `/`, its files, the client, which other pages may use,
    and the description of the HTTP routes."""
    page = resources.files("realtime_tts.server").joinpath("page")
    return [
        file_route("/", page.joinpath("index.html")),
        *static_routes(page, "/page/"),
        *static_routes(client_files(), "/client/"),
        *reference_routes(),
    ]


async def _upgrade_required(request: Request) -> Response:
    own = " with the subprotocol realtime-tts.v1" if request.scope["path"] == "/v1/tts" else ""
    message = (
        f"this is a WebSocket endpoint: connect to it as one{own}; if that is what the client "
        "did, a proxy in between has to pass on the header Upgrade\n"
    )
    return PlainTextResponse(message, status_code=426, headers={"upgrade": "websocket"})


async def _no_such_socket(websocket: WebSocket) -> None:
    message = "there is no WebSocket at this path; speech is at /v1/tts"
    await send_denial(websocket.scope, websocket.send, 404, "not_found", message)


async def _no_such_path(request: Request, problem: Exception) -> Response:
    """Answer 404. Clients whose base URL lacks `/v1`, or has it twice, learn the right path, and
    those whose upgrade got lost on the way learn that. A slash too many is redirected."""
    if request.method == "GET" and _exists(request, type="websocket"):
        return await _upgrade_required(request)
    path = request.scope["path"]
    shorter = path.rstrip("/")
    if shorter != path and _exists(request, path=shorter):
        # Relative, because only the client knows whether a proxy in between speaks TLS: to go on
        # with http:// would show the key to the network.
        query = request.url.query
        return RedirectResponse(quote(shorter) + (query and f"?{query}"))
    message = f"there is nothing at {path[:200]}"
    for meant in (f"/v1{path}", path.removeprefix("/v1")):
        if _exists(request, path=meant):
            message += f"; {meant[:200]} is there: look where the base URL has /v1"
            break
    return error_response(404, "not_found", message)


def _exists(request: Request, **changed: str) -> bool:
    """Return whether a route takes the request with this `changed` in its scope. The last route
    takes every WebSocket that no other does."""
    asked = {**request.scope, **changed}
    return any(route.matches(asked)[0] is not Match.NONE for route in request.app.routes[:-1])


async def _wrong_method(request: Request, problem: Exception) -> Response:
    """Answer 405 with every method of the path: the exception names those of one route only, and
    some paths have a route for each method."""
    found = (route for route in request.app.routes if isinstance(route, Route))
    here = (route for route in found if route.matches(request.scope)[0] is not Match.NONE)
    allowed = ", ".join(sorted({method for route in here for method in route.methods or ()}))
    message = f"{request.method} is not allowed here; use {allowed}"
    response = error_response(405, "method_not_allowed", message, fatal=False)
    response.headers["allow"] = allowed
    return response


async def _livez(request: Request) -> Response:
    """Answer 200 while a restart would not help: the event loop runs and the engine is not dead."""
    engine: EngineHost = request.app.state.front.engine
    return _health(engine.load_failure or engine.dead())


async def _readyz(request: Request) -> Response:
    """Answer 200 while new sessions are welcome: loaded, warm, not draining."""
    front: Front = request.app.state.front
    return _health(front.not_ready())


def _health(problem: str | None) -> Response:
    if problem is None:
        return PlainTextResponse("ok\n")
    return PlainTextResponse(problem + "\n", status_code=503)


async def _load(request: Request) -> Response:
    """Answer with how full the server is: `Load`, as JSON; also before it is ready, and in a
    drain."""
    front: Front = request.app.state.front
    return Response(msgspec.json.encode(front.load()), media_type="application/json")


async def _metrics(request: Request) -> Response:
    front: Front = request.app.state.front
    try:
        page = await front.metrics_page(request.headers.get("accept", ""))
    except TimeoutError:
        return _health("the other processes of the server do not answer")
    return Response(page.text, headers={"content-type": page.content_type})
