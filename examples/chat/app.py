"""A chatbot that talks in the browser: the demo page with a language model.

    python examples/chat/app.py --llm-url http://127.0.0.1:8002/v1 --llm-model any

The page and the speech are forwarded from the server at --tts. POST /chat is this program's own: it
streams the model's reply to the page, which sends it into a turn as it arrives. See README.md.
"""

import argparse
import contextlib
import json
import os
from collections.abc import AsyncIterator
from urllib.parse import quote

import uvicorn
from llm import LLMError, Model, add_model_arguments, model_of
from proxy import SpeechServer
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute

from realtime_tts.loopback import is_loopback
from realtime_tts.metrics import Metrics
from realtime_tts.server.auth import Gate

MAX_BODY_BYTES = 200_000


def create_app(model: Model, speech: SpeechServer, *, loopback: bool = True) -> Starlette:
    """Make the application. It refuses pages of other sites: a chat costs its owner money."""

    async def chat(request: Request) -> Response:
        try:
            messages = conversation(await body_of(request))
        except ValueError as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        return StreamingResponse(lines(model, messages), media_type="application/x-ndjson")

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await model.close()
        await speech.close()

    gate = Middleware(
        Gate, api_keys=(), allowed_origins=(), loopback=loopback, metrics=Metrics(), open_paths=()
    )
    routes = [
        Route("/chat", chat, methods=["POST"]),
        WebSocketRoute("/v1/tts", speech.speak),
        Route("/{path:path}", speech.get, methods=["GET"]),
    ]
    return Starlette(routes=routes, middleware=[gate], lifespan=lifespan)


async def lines(model: Model, messages: list[dict[str, str]]) -> AsyncIterator[str]:
    """Yield the reply as lines of JSON. A hang-up closes it, and the model stops."""
    async with contextlib.aclosing(model.deltas(messages)) as deltas:
        try:
            async for delta in deltas:
                yield json.dumps({"delta": delta}) + "\n"
        except LLMError as error:
            yield json.dumps({"error": str(error)}) + "\n"


async def body_of(request: Request) -> bytes:
    """Read the body of a request. Raises ValueError if it is too large."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise ValueError(f"the conversation has more than {MAX_BODY_BYTES} bytes")
    return body


def conversation(body: bytes) -> list[dict[str, str]]:
    """Return the messages in a request. Raises ValueError, which says what was expected."""
    try:
        sent = json.loads(body)
    except RecursionError:
        raise ValueError("the conversation is nested too deeply") from None
    messages = sent.get("messages") if isinstance(sent, dict) else None
    if not isinstance(messages, list) or not messages:
        raise ValueError('expected {"messages": [...]} with at least one message')
    for message in messages:
        known = isinstance(message, dict) and message.get("role") in ("user", "assistant")
        if not known or not isinstance(message.get("content"), str):
            raise ValueError("a message has a role, user or assistant, and content, a string")
    return [{"role": message["role"], "content": message["content"]} for message in messages]


def headers_for_the_page(model: str) -> dict[str, str]:
    """Return the headers that tell the page that it can chat, and with which model."""
    return {"x-chat-model": quote(model)}


def main() -> None:
    parser = argparse.ArgumentParser(description="A chatbot that talks, in the browser.")
    parser.add_argument("--tts", default="http://127.0.0.1:8000", help="the speech server")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8001)
    add_model_arguments(parser)
    arguments = parser.parse_args()
    key = os.environ.get("REALTIME_TTS_API_KEY")
    speech = SpeechServer(arguments.tts, key, headers_for_the_page(arguments.llm_model))
    app = create_app(model_of(arguments), speech, loopback=is_loopback(arguments.host))
    print(f"Open http://{arguments.host}:{arguments.port}/#chat", flush=True)
    uvicorn.run(app, host=arguments.host, port=arguments.port, log_level="warning")


if __name__ == "__main__":
    main()
