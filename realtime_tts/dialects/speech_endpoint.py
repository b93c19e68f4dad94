"""SpeechEndpoint: a text in a `POST`, its speech in the answer, whatever the API looks like.

Admission, the speech, and every way in which it can end are here. A dialect subclasses it and says
how a request is read (`order`). `sounds` and `timed_sounds` give the pieces of the answer.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from msgspec.structs import replace
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from realtime_tts.access.account import Account
from realtime_tts.audio.packets import FramedPackets
from realtime_tts.background import cancel
from realtime_tts.dialects.api import Api, Refusal
from realtime_tts.dialects.timing import spans_of
from realtime_tts.errors import RequestError
from realtime_tts.logs import event
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.protocol.settings import Limits, SessionSettings
from realtime_tts.server.auth import account_of
from realtime_tts.server.endpoints import object_in, read_body
from realtime_tts.server.front import Front
from realtime_tts.server.socket import abort, address_of
from realtime_tts.server.speech import Speech
from realtime_tts.server.track import Delivery, Sound
from realtime_tts.text.speech_times import SpokenSpan
from realtime_tts.tracing.context import traceparent_of

EVENTS = "text/event-stream"
_BYTES_PER_CHAR = 12  # `\ud83d\ude00`: the longest JSON of one character


def most_body_bytes(chars: int, limits: Limits) -> int:
    """Return the largest body for `chars` characters of text: their longest JSON, plus the size of
    one message for all other fields."""
    return _BYTES_PER_CHAR * chars + limits.max_message_bytes


async def read_object(request: Request, limits: Limits) -> dict[str, Any]:
    """Return the JSON object in the body, which may hold one text.

    Raises BodyTooLarge, ClientDisconnect; RequestError if it is no JSON object.
    """
    return object_in(await read_body(request, most_body_bytes(limits.max_text_chars, limits)))


def check_text(name: str, text: str, limits: Limits) -> None:
    """Raise RequestError if this field is empty or too long to be spoken."""
    most = limits.max_text_chars
    if not 1 <= len(text) <= most:
        raise RequestError(f"`{name}` must have 1 to {most} characters, it has {len(text)}")


async def timed_sounds(speech: Speech) -> AsyncGenerator[tuple[bytes, SpokenSpan | None], None]:
    """Yield the speech's sound in its format, each piece with a text that became spoken with it;
    times count from the start of the answer, in seconds. Further spans come with empty sound.

    The first piece comes with the first sound, so whatever refuses or fails the speech before it
    speaks (TurnFailure) is raised before the first piece.
    """
    given = await speech.next()
    while given is not None:
        spans = spans_of(speech)
        yield given.data if isinstance(given, Sound) else b"", next(spans, None)
        for span in spans:
            yield b"", span
            await asyncio.sleep(0)  # long texts must not delay other clients
        given = await speech.next(fill=True)


async def sounds(speech: Speech) -> AsyncGenerator[bytes, None]:
    """Yield the speech's sound in its format."""
    given = await speech.next()
    while given is not None:
        if isinstance(given, Sound):
            yield given.data
        given = await speech.next(fill=True)


log = logging.getLogger(__name__)

Pieces = AsyncGenerator[bytes, None]


@dataclass(frozen=True, slots=True)
class Order:
    """What a request asks for: a text, and how to speak and send it."""

    text: str
    settings: SessionSettings
    media_type: str | None = None
    """Media type of the answer; None: that of the format."""
    pieces: Callable[[Speech], Pieces] = sounds
    """Makes the pieces of the answer."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of the answer, beside those that every answer has."""
    warning: str = ""
    """A warning for the answer's header; empty for none."""


class SpeechEndpoint(abc.ABC):
    """The endpoint of a route. Until the answer begins, with the first sound, a refusal has a
    status; a later failure cuts the connection, or is an event if the answer consists of events."""

    api: ClassVar[Api]
    cuts_events: ClassVar[bool] = False
    """Whether the connection is cut after an event that says what failed."""

    def __init__(self, front: Front) -> None:
        self.front = front

    # What a dialect fills in.

    @abc.abstractmethod
    async def order(self, request: Request, request_id: str) -> Order:
        """Read the request and check it. Raises RequestError, ProtocolError, ClientDisconnect."""

    def failed_event(self, failure: TurnFailure, request_id: str) -> bytes:
        """Return an event that says that the speech failed; empty if the API has none for it."""
        return b""

    # The endpoint.

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _Answer(scope, receive, send, self.api.new_request_id())
        answer.address = self.front.addresses.of(scope.get("client"))
        try:
            await self._answer(Request(scope, receive), answer)
        except ClientDisconnect:
            return
        except (RequestError, ProtocolError) as error:
            await self._refuse(answer, self.api.of_problem(error))
        except TurnFailure as failure:
            await self._fail(answer, failure)
        except Exception:
            log.exception(f"{self.api.name}.bug", extra={"fields": {"request": answer.request_id}})
            await self._fail(answer, TurnFailure("internal", "a fault of the server"))

    async def _answer(self, request: Request, answer: _Answer) -> None:
        request_id = answer.request_id
        if request.method != "POST":
            await self._refuse(answer, self.api.wrong_method(request.method, "POST"))
            return
        answer.account = account = account_of(request.scope)
        self.front.admit(account)  # before anything asks the engine, which may be loading
        order = await self.order(request, request_id)
        # If a smaller lead was asked for, somebody listens while the sound comes.
        saved = order.settings.lead_ms == self.front.limits.max_lead_ms
        delivery = Delivery(FramedPackets, fills=True, saved=saved)
        answer.disclosure = self.front.disclosure(order.settings)
        settings = replace(order.settings, traceparent=traceparent_of(request.scope))
        reporter = self.front.reporter(request_id, address_of(request.scope))
        answer.speech = self.front.open_speech(request_id, settings, reporter, delivery, account)
        async with answer.heard():
            with self.front.registered(answer):
                await answer.send_all(order)

    async def _fail(self, answer: _Answer, failure: TurnFailure) -> None:
        told = self.failed_event(failure, answer.request_id)
        await self._refuse(answer, self.api.of_failure(failure), told)

    async def _refuse(self, answer: _Answer, refusal: Refusal, told: bytes = b"") -> None:
        request_id, name = answer.request_id, f"{self.api.name}.error"
        event(log, logging.INFO, name, request=request_id, status=refusal.status)
        await answer.refuse(self.api.response(refusal, request_id), told, cut=self.cuts_events)


class _Answer:
    """The answer to one request. It begins with the first piece; until then a refusal has a status.
    The front sees a connection that has begun its only turn and is not stopped by a drain."""

    sessions = open_turns = 1
    account: Account
    speech: Speech
    """The speech of the answer; set once it is open."""
    address: object
    disclosure: tuple[str, str]
    """The header that says that the sound is synthetic."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        self.request_id = request_id
        self._media_type: str | None = None  # None until it has begun
        self._scope, self._receive, self._send = scope, receive, send

    @property
    def live_turns(self) -> int:
        return len(self.speech.segments)

    def drain(self) -> None:
        pass

    def end(self, why: TurnFailure) -> None:
        self.speech.fail(why)

    def revoke(self, why: TurnFailure) -> None:
        self.speech.fail(why)

    @contextlib.asynccontextmanager
    async def heard(self) -> AsyncIterator[None]:
        """Close the speech at the end of the block, or as soon as the client hangs up.

        After that the speech gives nothing more, and what is still sent reaches nobody.
        """

        async def watch() -> None:
            while (await self._receive())["type"] != "http.disconnect":
                pass
            self.speech.close()

        watcher = asyncio.create_task(watch(), name=f"hang-up-{self.request_id}")
        try:
            yield
        finally:
            self.speech.close()
            await cancel(watcher)

    async def send_all(self, order: Order) -> None:
        """Speak the text: send 200 with the first piece, then every piece that is not empty."""
        self.speech.feed(order.text)
        self.speech.end()
        async with contextlib.aclosing(order.pieces(self.speech)) as pieces:
            async for piece in pieces:
                if self._media_type is None:
                    await self._start(order)
                if piece:
                    await self._body(piece)
        await self._body(b"", more=False)

    async def refuse(self, response: Response, event: bytes = b"", *, cut: bool = False) -> None:
        """Send this response instead of speech. If speech has begun: send `event` and the end,
        where the answer consists of events, or a `cut` after it; else cut the connection."""
        if self._media_type is None:
            await response(self._scope, self._receive, self._send)
            return
        told = bool(event) and self._media_type == EVENTS
        if told:
            await self._body(event)
        if told and not cut:
            await self._body(b"", more=False)
        else:  # an answer that has begun has no other way to say that it failed
            abort(self._scope, "speech_failed")
            await asyncio.sleep(0)  # the loss is noticed before the application returns

    async def _start(self, order: Order) -> None:
        self._media_type = order.media_type or order.settings.audio.media_type
        headers = {
            "content-type": self._media_type,
            "cache-control": "no-cache",
            "x-request-id": self.request_id,
            **dict([self.disclosure]),
            **order.headers,
            **({"warning": f'299 - "{order.warning}"'} if order.warning else {}),
        }
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": 200, "headers": encoded})

    async def _body(self, body: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})
