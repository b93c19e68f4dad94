"""Who may talk to the server: API keys and origins, checked before any route sees the request.

Pure ASGI on purpose: Starlette's `BaseHTTPMiddleware` never sees a WebSocket. `/livez` and
`/readyz` are exempt, because probes carry no key and learn nothing but a word from them; so are the
files of the demo page, which are no secret and have the field to put a key into.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from realtime_tts.logs import event
from realtime_tts.metrics import Metrics
from realtime_tts.protocol.messages import KEY_SUBPROTOCOL_PREFIX

log = logging.getLogger(__name__)

OPEN_PATHS = frozenset({"/livez", "/readyz"})

Denial = Callable[[Scope, Send, int, str, str], Awaitable[None]]
"""Answers with a status, a code and a message, as the clients of some route expect it."""


class Gate:
    """ASGI middleware in front of every route.

    - `open_paths` are open to all.
    - `denials` say no at the paths that begin so; elsewhere the answer is the native `error`.
    - No key configured: open. Otherwise one of `Authorization: Bearer|Token KEY`, `X-API-Key: KEY`
      or the subprotocol `realtime-tts.key.KEY`, else 401.
    - An `Origin` header (browsers send it, and nothing else stops one page from using another's
      server) must be this server's own or in the list, else 403. No `Origin` is fine.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        api_keys: Iterable[str],
        allowed_origins: Iterable[str],
        loopback: bool,
        metrics: Metrics,
        open_paths: Collection[str] = OPEN_PATHS,
        denials: Mapping[str, Denial] | None = None,
    ) -> None:
        self._app = app
        self._open_paths = frozenset(open_paths)
        self._denials = dict(denials or {})
        self._keys = [_digest(key.encode()) for key in api_keys]
        self._origins = frozenset(origin.lower() for origin in allowed_origins)
        self._loopback = loopback
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and scope["path"] not in self._open_paths:
            denial = self._denial(scope)
            if denial is not None:
                await self._deny(scope, send, *denial)
                return
        await self._app(scope, receive, send)

    def _denial(self, scope: Scope) -> tuple[int, str, str] | None:
        """None to let it pass, else status, code and message."""
        headers = scope["headers"]
        origins = [value.decode("latin-1") for name, value in headers if name == b"origin"]
        hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
        if not all(self._origin_allowed(origin, hosts) for origin in origins):
            message = "this origin is not allowed; start the server with --allow-origin to add it"
            return 403, "origin_not_allowed", message
        if self._keys and not self._known(_keys_offered(scope)):
            return 401, "unauthorized", "a valid API key is needed (Authorization: Bearer KEY)"
        return None

    def _origin_allowed(self, origin: str, hosts: list[str]) -> bool:
        if origin.lower() in self._origins or "*" in self._origins:
            return True
        own = len(hosts) == 1 and urlsplit(origin).netloc.lower() == hosts[0].lower() != ""
        # A page can make its own host name resolve to 127.0.0.1 and then has "our" host: on a
        # server that only this machine reaches, the name must be this machine's as well.
        return own and (not self._loopback or is_loopback(urlsplit(origin).hostname or ""))

    def _known(self, offered: Iterable[bytes]) -> bool:
        """Compares every offer with every key, so that the time taken tells nothing."""
        matches = 0
        for key in offered:
            digest = _digest(key)
            for known in self._keys:
                matches += hmac.compare_digest(digest, known)
        return matches > 0

    async def _deny(self, scope: Scope, send: Send, status: int, code: str, message: str) -> None:
        self._metrics.refused.labels(code).inc()
        event(
            log,
            logging.WARNING,
            "refused",
            code=code,
            path=scope["path"],
            client=scope.get("client"),
        )
        await self._answer_for(scope["path"])(scope, send, status, code, message)

    def _answer_for(self, path: str) -> Denial:
        found = (deny for prefix, deny in self._denials.items() if path.startswith(prefix))
        return next(found, send_denial)


async def send_denial(
    scope: Scope, send: Send, status: int, code: str, message: str, retry_after: int | None = None
) -> None:
    """Answer with a status and the same JSON `error` that a session would get."""
    error = {
        "type": "error",
        "code": code,
        "message": message,
        "fatal": True,
        "retryable": retry_after is not None,
    }
    if retry_after is not None:
        error["retry_after_ms"] = retry_after * 1000
    body = json.dumps(error).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if retry_after is not None:
        headers.append((b"retry-after", b"%d" % retry_after))
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    await send({"type": f"{kind}.start", "status": status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body, "more_body": False})


def is_loopback(host: str) -> bool:
    """Whether `host`, a name or an address without port, can only mean this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _keys_offered(scope: Scope) -> Iterator[bytes]:
    for name, value in scope["headers"]:
        if name == b"authorization":
            kind, _, key = value.partition(b" ")
            if kind.lower() in (b"bearer", b"token"):
                yield key.strip()
        elif name == b"x-api-key":
            yield value.strip()
    for offer in scope.get("subprotocols", ()):
        if offer.startswith(KEY_SUBPROTOCOL_PREFIX):
            yield offer.removeprefix(KEY_SUBPROTOCOL_PREFIX).encode()


def _digest(key: bytes) -> bytes:
    """Equal lengths for the comparison, and no key in memory dumps of the middleware."""
    return hashlib.sha256(key).digest()
