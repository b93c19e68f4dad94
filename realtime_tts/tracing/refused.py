"""RefusedRequests: the span of a request, or of a WebSocket's upgrade, that is refused.

Turns have spans of their own. A request that never becomes a turn would be missing in the trace of
its caller, so it has one span there. A request that names no trace has none; metrics count it.
"""

from __future__ import annotations

import time
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from realtime_tts.tracing.context import REFUSED, traceparent_of, valid
from realtime_tts.tracing.tracer import Tracer

_FAILS = 400
_ANSWERS = ("http.response.start", "websocket.http.response.start")


class RefusedRequests:
    """ASGI middleware that writes these spans, for a server that traces."""

    def __init__(self, app: ASGIApp, tracer: Tracer) -> None:
        self._app, self._tracer = app, tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parent = _parent(scope) if scope["type"] in ("http", "websocket") else None
        if parent is None:
            await self._app(scope, receive, send)
            return
        began, status = time.time_ns(), 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] in _ANSWERS:
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            code = scope.get(REFUSED)
            if code is not None or status >= _FAILS:
                self._tracer.refused(
                    parent,
                    began,
                    method=scope.get("method", "GET"),
                    path=_shown(scope),
                    status=status or None,
                    code=code or str(status),
                )


def _parent(scope: Scope) -> str | None:
    """Return the caller's span: from the header, or the query, since pages cannot set headers."""
    found = traceparent_of(scope)
    if found is None and b"traceparent=" in scope["query_string"]:
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("traceparent", [""])
        found = valid(asked[0])
    return found


def _shown(scope: Scope) -> str:
    """Return the part of the path that a route names itself, or `/`: behind it is what the client
    wrote, such as the name of a voice."""
    path = f"{scope['path']}/"
    named = (getattr(route, "path", "").partition("{")[0] for route in scope["app"].routes)
    begins = (f"{one.rstrip('/')}/" for one in named)
    longest = max((one for one in begins if path.startswith(one)), key=len, default="/")
    return longest.rstrip("/") or "/"
