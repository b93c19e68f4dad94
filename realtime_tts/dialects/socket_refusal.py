"""How a socket of another API is refused before it begins."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse
from starlette.websockets import WebSocket

from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.messages import CloseCode
from realtime_tts.server.auth import echoed_subprotocol

_OVERLOADS = frozenset({"overloaded", "too_many_sessions"})


def status_of(failure: TurnFailure) -> int:
    """429 where others are in the way, 503 where another try may help."""
    return 429 if failure.code in _OVERLOADS else 503


async def refuse(websocket: WebSocket, failure: TurnFailure, body: Any) -> None:
    """A status before the upgrade; a browser cannot see that, and is told by the close."""
    if "origin" in websocket.headers:
        await websocket.accept(echoed_subprotocol(websocket.scope))
        await websocket.close(CloseCode.TRY_AGAIN, failure.code)
        return
    wait = str(max(1, -(-(failure.retry_after_ms or 0) // 1000)))
    response = JSONResponse(body, status_of(failure), {"retry-after": wait})
    await websocket.send_denial_response(response)
