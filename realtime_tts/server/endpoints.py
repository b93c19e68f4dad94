"""What HTTP endpoints have in common: they read bodies up to a limit, and answer with errors."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from realtime_tts.access.account import UNAUTHORIZED, revoked
from realtime_tts.errors import RequestError, RouteError
from realtime_tts.logs import event
from realtime_tts.protocol.parsing import ProtocolError, load_object
from realtime_tts.server.auth import account_of
from realtime_tts.server.denials import error_response
from realtime_tts.server.front import Front

log = logging.getLogger(__name__)

_GZIP = b"\x1f\x8b"  # how its bytes begin

T = TypeVar("T")

Endpoint = Callable[[Request], Awaitable[Response]]
Handler = Callable[[T, Request], Awaitable[Response]]
"""Answers a request; its first argument is what it needs of the server."""


class BodyTooLarge(RequestError):
    """The body has more bytes than the endpoint accepts; they have been read and dropped."""

    def __init__(self, most: int) -> None:
        super().__init__(f"the body must have at most {most} bytes")


class KeyEnded(RequestError, code=UNAUTHORIZED):
    """The request's key was revoked while its body came."""


async def read_body(request: Request, most: int) -> bytes:
    """Return the whole body. Raises BodyTooLarge, and ClientDisconnect.

    A body that is too large is still read to its end (the server's deadline for bodies ends an
    endless one): a client that is still writing when the answer comes would not see the answer.
    """
    body, size = bytearray(), 0
    async for piece in request.stream():
        size += len(piece)
        if size <= most:
            body += piece
    if size > most:
        raise BodyTooLarge(most)
    return bytes(body)


async def read_upload(
    request: Request, most: int, too_large: Callable[[str], Exception]
) -> list[bytes]:
    """Return the body in pieces. As soon as the body has, or claims, more than `most` bytes, raises
    what `too_large` makes of the words for its size. Raises KeyEnded, too."""
    claimed = request.headers.get("content-length", "")
    if claimed.isdecimal() and int(claimed) > most:
        raise too_large(f"{int(claimed)} bytes")
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > most:
            raise too_large("more")
        pieces.append(piece)
    if account_of(request.scope).ended:
        raise KeyEnded(revoked().message)
    return pieces


def object_in(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body, without null fields. Raises RequestError."""
    try:
        fields = load_object(body.decode())
    except (UnicodeDecodeError, ProtocolError) as error:
        what = str(error)
        if body.startswith(_GZIP):
            what = "it is compressed (send it as it is, without `Content-Encoding`)"
        raise RequestError(f"the body must be a JSON object in UTF-8: {what}") from None
    return {name: value for name, value in fields.items() if value is not None}


def answered(name: str, handler: Handler[Front]) -> Endpoint:
    """Return `handler` as an endpoint: errors become answers, and are logged as `name`.refused."""

    async def endpoint(request: Request) -> Response:
        try:
            return await handler(request.app.state.front, request)
        except RouteError as error:
            code, path, client = error.code, request.url.path, request.client
            event(log, logging.WARNING, f"{name}.refused", code=code, path=path, client=client)
            wait, again = error.retry_after or None, error.retryable
            return error_response(
                error.status, code, str(error), wait, fatal=False, retryable=again
            )
        except KeyEnded as error:
            return error_response(401, error.code, str(error), fatal=False)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it

    return endpoint
