"""How a socket of another API is refused before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse
from starlette.websockets import WebSocket

from realtime_tts.dialects.refusals import retry_after
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.messages import CloseCode
from realtime_tts.server.auth import echoed_subprotocol

BAD_REQUEST = "bad_request"
"""The address asks for something that there is not."""

_OVERLOADS = frozenset({"overloaded", "too_many_sessions"})
_REASON_BYTES = 123  # of a close frame


def status_of(failure: TurnFailure) -> int:
    """429 where others are in the way, 503 where another try may help, 400 where none does."""
    if failure.code == BAD_REQUEST:
        return 400
    return 429 if failure.code in _OVERLOADS else 503


async def refuse(
    websocket: WebSocket, failure: TurnFailure, body: Any, headers: Mapping[str, str]
) -> None:
    """A status before the upgrade; a browser cannot see that, and is told by the close."""
    status = status_of(failure)
    if "origin" in websocket.headers:
        await websocket.accept(echoed_subprotocol(websocket.scope))
        if status == 400:
            reason = failure.message.encode(errors="replace")[:_REASON_BYTES]
            await websocket.close(CloseCode.POLICY, reason.decode(errors="ignore"))
        else:
            await websocket.close(CloseCode.TRY_AGAIN, failure.code)
        return
    response = JSONResponse(body, status, {**retry_after(failure), **headers})
    await websocket.send_denial_response(response)
