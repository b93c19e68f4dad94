"""SpeechEndpoint: a text in a `POST`, its speech in the answer, whatever the API looks like.

Admission, the speech, and every way in which it can end are here. A dialect
subclasses it and says how a request is read (`order`), and what is said instead of speech.
"""

from __future__ import annotations

import abc
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from realtime_tts.audio.packets import FramedPackets
from realtime_tts.dialects.fields import SPEED_IS_ONE
from realtime_tts.dialects.http import (
    ClientGone,
    Reply,
    answering,
    new_request_id,
    sounds,
)
from realtime_tts.errors import RequestError
from realtime_tts.logs import event
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.parsing import ProtocolError
from realtime_tts.protocol.settings import Limits, SessionSettings
from realtime_tts.server.front import Front
from realtime_tts.server.socket import address_of
from realtime_tts.server.speech import Delivery, Speech

log = logging.getLogger(__name__)

Pieces = AsyncGenerator[bytes, None]


@dataclass(frozen=True, slots=True)
class Order:
    """What a request asks for: a text, and how it is to be spoken and sent."""

    text: str
    settings: SessionSettings
    media_type: str | None = None
    """Of the answer, where it is not the format's."""
    pieces: Callable[[Speech], Pieces] = sounds
    """What the answer is made of."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of the answer, beside those that every answer has."""
    other_speed: bool = False
    """Another speed than 1 was asked for: the answer's header warns of it."""


class SpeechEndpoint(abc.ABC):
    """The endpoint of a route. Until the answer begins, with the first sound, a refusal has a
    status; what fails later cuts the connection, or is an event where the answer is of events."""

    api: ClassVar[str]
    """Its name in the log."""
    cuts_events: ClassVar[bool] = False
    """Whether the connection is cut behind an event that says what failed."""

    def __init__(self, front: Front) -> None:
        self.front = front

    # What a dialect fills in.

    @abc.abstractmethod
    async def order(self, request: Request, request_id: str) -> Order:
        """Read the request and check it. Raises RequestError, ProtocolError and ClientGone."""

    @abc.abstractmethod
    def wrong_method(self, method: str, request_id: str) -> Response:
        """For anything but `POST`."""

    @abc.abstractmethod
    def unfit(self, problem: RequestError | ProtocolError, request_id: str) -> Response:
        """For a request that cannot be taken."""

    @abc.abstractmethod
    def failed(self, failure: TurnFailure, request_id: str) -> Response:
        """For speech that is not to be had now, or went wrong."""

    def failed_event(self, failure: TurnFailure, request_id: str) -> bytes:
        """The same as an event; empty if the API has none for it."""
        return b""

    def new_request_id(self) -> str:
        """What the request is called in the answer and in the log."""
        return new_request_id()

    # What it calls.

    @property
    def limits(self) -> Limits:
        """What a request may have; once the engine is ready."""
        return self.front.limits

    def settings(self, **chosen: Any) -> SessionSettings:
        """The checkpoint's defaults and the longest lead, but for what is chosen and not None:
        most clients play a file when it is complete."""
        return self.front.settings(longest_lead=True, **chosen)

    # The endpoint.

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = Reply(scope, receive, send, self.new_request_id())
        try:
            await self._answer(Request(scope, receive), reply)
        except ClientGone:
            return
        except (RequestError, ProtocolError) as error:
            await self._refuse(reply, self.unfit(error, reply.request_id))
        except TurnFailure as failure:
            await self._fail(reply, failure)
        except Exception:
            log.exception(f"{self.api}.bug", extra={"fields": {"request": reply.request_id}})
            await self._fail(reply, TurnFailure("internal", "a fault of the server"))

    async def _answer(self, request: Request, reply: Reply) -> None:
        request_id = reply.request_id
        if request.method != "POST":
            await self._refuse(reply, self.wrong_method(request.method, request_id))
            return
        self.front.admit()  # before anything asks the engine, which may be loading
        order = await self.order(request, request_id)
        saved = order.settings.lead_ms == self.limits.max_lead_ms  # a smaller one was asked for
        delivery = Delivery(FramedPackets, fills=True, saved=saved)
        client = address_of(request.scope)
        speech = self.front.open_speech(request_id, order.settings, client, delivery)
        async with answering(speech, request.receive):
            with self.front.registered(_Answer(speech)):
                speech.feed(order.text)
                speech.end()
                warned = {"warning": f'299 - "{SPEED_IS_ONE}"'} if order.other_speed else {}
                reply.headers = {**order.headers, **warned}
                media_type = order.media_type or order.settings.audio.media_type
                await reply.send_all(media_type, order.pieces(speech))

    async def _fail(self, reply: Reply, failure: TurnFailure) -> None:
        told = self.failed_event(failure, reply.request_id)
        await self._refuse(reply, self.failed(failure, reply.request_id), told)

    async def _refuse(self, reply: Reply, response: Response, told: bytes = b"") -> None:
        status = response.status_code
        event(log, logging.INFO, f"{self.api}.error", request=reply.request_id, status=status)
        await reply.refuse(response, told, cut=self.cuts_events)


class _Answer:
    """One that is being spoken, as the front sees it: it has begun its only turn, and goes on in a
    drain."""

    sessions = open_turns = 1

    def __init__(self, speech: Speech) -> None:
        self._speech = speech

    def drain(self) -> None:
        pass

    def end(self, why: TurnFailure) -> None:
        self._speech.fail(why)
