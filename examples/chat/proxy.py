"""Forwards everything except the chat to the speech server: the browser needs one address only."""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from urllib.parse import urlsplit

import httpx2
import websockets
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.websockets import WebSocket, WebSocketDisconnect

TRY_AGAIN = 1013
PASSED_ON = ("cache-control", "content-security-policy", "content-type", "etag", "retry-after")


class SpeechServer:
    """A proxy for the speech server."""

    def __init__(
        self, url: str, key: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """`url`: the server's address. `key`: its key, if any. `headers`: added to every answer."""
        self.url = url.rstrip("/").replace("ws://", "http://", 1).replace("wss://", "https://", 1)
        self._key = key
        self._headers = dict(headers or {})
        self._http = httpx2.AsyncClient(base_url=self.url, trust_env=False)  # it is near

    async def close(self) -> None:
        await self._http.aclose()

    async def get(self, request: Request) -> Response:
        """Forward a GET: the page, the files that it imports, the voices, or the health check."""
        headers = _given(request, "accept", "authorization", "if-none-match") | self._key_header()
        try:
            found = await self._http.get(request.url.path, headers=headers)
        except httpx2.HTTPError:
            return JSONResponse({"error": self._absent()}, status_code=503)
        passed = {name: found.headers[name] for name in PASSED_ON if name in found.headers}
        return Response(found.content, found.status_code, headers=passed | self._headers)

    async def speak(self, websocket: WebSocket) -> None:
        """Forward one session: every message of each side goes to the other unchanged."""
        query = f"?{websocket.url.query}" if websocket.url.query else ""
        url = f"ws{self.url.removeprefix('http')}{websocket.url.path}{query}"
        try:
            upstream = await websockets.connect(
                url,
                subprotocols=websocket.scope["subprotocols"],
                additional_headers=_given(websocket, "authorization") | self._key_header(),
                compression=None,
                proxy=None,
                max_size=None,
            )
        except websockets.InvalidStatus as refused:
            await _refuse(websocket, bytes(refused.response.body or b""))
        except (OSError, websockets.WebSocketException, TimeoutError):
            await _refuse(websocket, b"", self._absent())
        else:
            async with upstream:
                await websocket.accept(upstream.subprotocol)
                await _join(websocket, upstream)

    def _absent(self) -> str:
        return f"the speech server at {urlsplit(self.url).netloc} does not answer"

    def _key_header(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._key}"} if self._key else {}


def _given(connection: HTTPConnection, *names: str) -> dict[str, str]:
    """Return the headers with these names that the browser sent."""
    return {name: connection.headers[name] for name in names if name in connection.headers}


async def _join(websocket: WebSocket, upstream: websockets.ClientConnection) -> None:
    """Forward messages until one side closes, then close the other one, too."""
    ways = [
        asyncio.create_task(_up(websocket, upstream)),
        asyncio.create_task(_down(upstream, websocket)),
    ]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
    with contextlib.suppress(RuntimeError, WebSocketDisconnect):
        code = upstream.close_code
        await websocket.close(code if code and code not in (1005, 1006) else TRY_AGAIN)


async def _up(websocket: WebSocket, upstream: websockets.ClientConnection) -> None:
    while (message := await websocket.receive())["type"] == "websocket.receive":
        data = message.get("text")
        await upstream.send(message["bytes"] if data is None else data)


async def _down(upstream: websockets.ClientConnection, websocket: WebSocket) -> None:
    async for message in upstream:
        if isinstance(message, str):
            await websocket.send_text(message)
        else:
            await websocket.send_bytes(message)


async def _refuse(websocket: WebSocket, body: bytes, absent: str = "") -> None:
    """Refuse a session with an error message: a page cannot see a WebSocket's HTTP status."""
    error = {"type": "error", "code": "not_ready", "message": absent, "fatal": True}
    error |= {"retryable": True, "retry_after_ms": 2000}
    with contextlib.suppress(ValueError):
        error |= json.loads(body)
    offered = websocket.scope["subprotocols"]
    await websocket.accept(offered[0] if offered else None)  # a browser wants one of its own
    await websocket.send_text(json.dumps(error))
    await websocket.close(TRY_AGAIN)
