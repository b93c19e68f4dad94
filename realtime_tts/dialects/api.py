"""Api: how one API says over HTTP that a request is refused or has failed.

Errors have one shape in each API: for requests, for sockets before the upgrade, and at the gate.
"""

from __future__ import annotations

import abc
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from realtime_tts.access.account import LIMIT_REACHED, UNAUTHORIZED, VoiceNotAllowed
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.server.auth import TOO_MANY_REQUESTS
from realtime_tts.server.denials import send_instead
from realtime_tts.server.endpoints import Endpoint
from realtime_tts.server.front import Front
from realtime_tts.server.socket import BAD_REQUEST

_READING = "GET", "HEAD"
_USUAL_PAGE, _LONGEST_PAGE = 10, 100

_STATUS = {
    BAD_REQUEST: 400,
    TOO_MANY_REQUESTS: 429,
    LIMIT_REACHED: 429,
    UNAUTHORIZED: 401,
    VoiceNotAllowed.code: 403,
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a client does not get what it asks for. `code`: the API's word for it, if it has one;
    `param`: the parameter at fault, if that is known."""

    status: int
    code: str | None
    message: str
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Api(abc.ABC):
    """The errors of one API."""

    name: ClassVar[str]
    """Name of the API in the log."""
    codes: ClassVar[Mapping[str, tuple[int, str]]] = {}
    """The status and the API's code of a failure, by our code of it."""
    permanent: ClassVar[int] = 400
    """The status of all other failures that trying again does not help."""
    denials: ClassVar[Mapping[int, str]] = {}
    """The API's code for what the gate denies, by status, where it is not ours."""
    method_code: ClassVar[str | None] = "method_not_allowed"
    method_hint: ClassVar[str] = "{} is not for this path; use {}"

    @abc.abstractmethod
    def body(self, refusal: Refusal, request_id: str) -> dict[str, Any]:
        """Return the body of the answer, as a JSON object."""

    def headers(self, refusal: Refusal, request_id: str) -> dict[str, str]:
        """Return headers of the answer, besides those of the refusal."""
        return self.id_headers(request_id)

    def id_headers(self, request_id: str) -> dict[str, str]:
        """Return the headers of every answer that name the request."""
        return {"x-request-id": request_id}

    def new_request_id(self) -> str:
        """Return a new name for a request, in the answer and in the log."""
        return f"req_{secrets.token_hex(12)}"

    def of_failure(self, failure: TurnFailure) -> Refusal:
        """Return the refusal for a failure: 503 where another try may help, also at another server,
        which is what proxies then do; 429 for clients that ask for too much."""
        usual = 503 if failure.retryable else self.permanent
        status = _STATUS.get(failure.code, usual)
        status, code = self.codes.get(failure.code, (status, failure.code))
        return Refusal(status, code, failure.message, headers=_retry_after(failure))

    def code_of(self, problem: RequestError | ProtocolError) -> str:
        """Return the code for a request or message that cannot be accepted."""
        return problem.code

    def failure_of(self, problem: RequestError | ProtocolError) -> TurnFailure:
        """Return the failure for a request or message that cannot be accepted."""
        return TurnFailure(self.code_of(problem), str(problem))

    def of_problem(self, problem: RequestError | ProtocolError) -> Refusal:
        """Return the refusal for a request that cannot be accepted."""
        return self.of_failure(self.failure_of(problem))

    def wrong_method(self, found: str, *allowed: str) -> Refusal:
        """Return the refusal for a method that this path does not have."""
        message = self.method_hint.format(found, allowed[0])
        return Refusal(405, self.method_code, message, headers={"allow": ", ".join(allowed)})

    def response(self, refusal: Refusal, request_id: str) -> JSONResponse:
        """Return the answer that refuses."""
        headers = {**refusal.headers, **self.headers(refusal, request_id)}
        return JSONResponse(self.body(refusal, request_id), refusal.status, headers)

    def endpoint(self, serve: Callable[[Request], Awaitable[Any]]) -> Endpoint:
        """Return an endpoint that answers with what `serve` returns: a response, a refusal, or a
        value to send as JSON. Errors become refusals."""

        async def endpoint(request: Request) -> Response:
            request_id = self.new_request_id()
            try:
                found = await serve(request)
            except ClientDisconnect:
                return Response(status_code=400)  # nobody reads it
            except (RequestError, ProtocolError) as error:
                found = self.of_problem(error)
            if isinstance(found, Refusal):
                return self.response(found, request_id)
            answer = found if isinstance(found, Response) else JSONResponse(found)
            answer.headers.update(self.id_headers(request_id))
            return answer

        return endpoint

    async def deny(self, scope: Scope, send: Send, status: int, code: str, message: str) -> None:
        """Answer in place of the gate, which denies the request."""
        headers = {"www-authenticate": "Bearer"} if status == 401 else {}
        refusal = Refusal(status, self.denials.get(status, code), message, headers=headers)
        await send_instead(self.response(refusal, self.new_request_id()), scope, send)


class ListEndpoint:
    """The endpoint of a list, by `GET`; 503 while the engine is not ready. `answer` returns the
    body of the answer, or a refusal."""

    def __init__(
        self, api: Api, front: Front, answer: Callable[[Front, Request], Any | Refusal]
    ) -> None:
        self._api, self._front, self._answer = api, front, answer
        self._endpoint = api.endpoint(self._found)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._endpoint(Request(scope))
        await response(scope, receive, send)

    async def _found(self, request: Request) -> Any | Refusal:
        if request.method not in _READING:
            return self._api.wrong_method(request.method, *_READING)
        if (reason := self._front.not_ready()) is not None:
            return self._api.of_failure(TurnFailure("not_ready", reason, True, 2_000))
        return self._answer(self._front, request)


def page_of(
    names: Sequence[str], query: Mapping[str, str], size: str, after: str, before: str = ""
) -> tuple[Sequence[str], bool]:
    """Return one page of a list, and whether the list goes on. `size`, `after` and `before` are the
    API's parameters: how many names, and between which ones."""
    first, last, asked = query.get(after), query.get(before), query.get(size, "")
    if first in names:
        names = names[names.index(first) + 1 :]
    if last in names:
        names = names[: names.index(last)]
    whole = asked.isascii() and asked.isdigit()
    most = min(_LONGEST_PAGE, max(1, int(asked[:9]))) if whole else _USUAL_PAGE
    page = names[-most:] if last else names[:most]
    return page, len(page) < len(names)


def _retry_after(failure: TurnFailure) -> dict[str, str]:
    """Return the header that says in how many seconds to try again, if that may help."""
    if not failure.retryable or failure.retry_after_ms is None:
        return {}
    return {"retry-after": str(max(1, -(-failure.retry_after_ms // 1000)))}
