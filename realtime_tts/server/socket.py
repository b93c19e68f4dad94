"""ServedSocket: one accepted WebSocket, whatever is spoken over it: its reader, its one writer, its
lines in the log, and a wall around what goes wrong.

Two tasks per socket. The reader always drains: it never waits for speech. Nothing that a client
sends ends another's socket, and nothing that fails here is without a word in the log.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import cast

from starlette.routing import WebSocketRoute
from starlette.types import Scope
from starlette.websockets import WebSocket, WebSocketDisconnect

from realtime_tts.access.account import Account
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.server.auth import account_of, echoed_subprotocol
from realtime_tts.server.front import Front
from realtime_tts.server.guarded import ABORT_EXTENSION
from realtime_tts.server.refusals import SLOW_READER
from realtime_tts.server.registered import Registered
from realtime_tts.server.writer import Writer, WriterFull
from realtime_tts.tracing.context import REFUSED, traceparent_of

BAD_REQUEST = "bad_request"
"""The address asks for something that there is not."""


class ServedSocket(Registered, abc.ABC):
    """`serve` is the endpoint; it counts with the front. Subclasses say what is done with a
    message, and after a fault."""

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        self.front = front
        self.websocket = websocket
        self.name = secrets.token_hex(6)
        """No other socket has it."""
        self.client = address_of(websocket.scope)
        self.address = front.addresses.of(websocket.scope.get("client"))
        self.bad = self.address.bad_messages(front.config.limits.max_bad_messages)
        """When there were bad messages: of its address before it, and its own."""
        self.traceparent = traceparent_of(websocket.scope)
        self.reporter = front.reporter(self.name, self.client, self.traceparent)
        self.writer = Writer(websocket, front.max_outbox())

    @property
    def account(self) -> Account:
        """Whose it is; one whose key comes late belongs to nobody until then."""
        return account_of(self.websocket.scope)

    @classmethod
    def route(cls, front: Front, path: str) -> WebSocketRoute:
        """The route of such sockets."""
        return WebSocketRoute(path, partial(cls.serve, front))

    @classmethod
    async def serve(cls, front: Front, websocket: WebSocket) -> None:
        """Returns when the socket is gone. RequestError from the constructor is a refusal, too."""
        try:
            account = account_of(websocket.scope)
            front.admit(account)  # before anything asks the engine, which may be loading
            try:
                one = cls(front, websocket)
            except RequestError as error:
                raise TurnFailure(BAD_REQUEST, str(error)) from None
            with front.registered(one):
                name, value = front.disclosure()
                told = [(name.encode(), value.encode())]
                await websocket.accept(cls.subprotocol(websocket.scope), told)
                await one.run()
        except TurnFailure as failure:
            websocket.scope[REFUSED] = failure.code
            with contextlib.suppress(WebSocketDisconnect, OSError):
                await cls.refuse(websocket, failure)
        except (WebSocketDisconnect, OSError):
            return  # gone before the handshake was answered

    @classmethod
    def subprotocol(cls, scope: Scope) -> str | None:
        """The one to accept: the first that was offered and is no key."""
        return echoed_subprotocol(scope)

    @classmethod
    @abc.abstractmethod
    async def refuse(cls, websocket: WebSocket, failure: TurnFailure) -> None:
        """Answer with a status before the upgrade; a browser, which cannot see that, is told after
        the upgrade."""

    @abc.abstractmethod
    def opened(self) -> None:
        """The socket was accepted."""

    @abc.abstractmethod
    def take_frame(self, raw: str | bytes) -> None:
        """A message: str for a text frame, bytes for a binary one."""

    @abc.abstractmethod
    def faulted(self) -> None:
        """A fault of ours is in the log: end the socket, as properly as may be."""

    @abc.abstractmethod
    def gone(self) -> None:
        """The socket was closed, by whomever: leave nothing running."""

    def lost(self, reason: str) -> None:
        """Drop the socket without a close; the reader is told and cleans up."""
        self.writer.shut()
        abort(self.websocket.scope, reason)

    async def run(self) -> None:
        """Serve the socket until it is gone."""
        self.reporter.opened()
        writer = asyncio.create_task(self._write(), name=f"writer-{self.name}")
        try:
            with self.contained():
                self.opened()
            await self._read()
        finally:
            self.gone()
            self.address.remember_bad(self.bad)
            self.writer.shut()
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    async def _read(self) -> None:
        slices, address = self.front.slices, self.address.name
        while True:
            message = await self.websocket.receive()
            if message["type"] == "websocket.disconnect":
                self.reporter.closed(message.get("code"), message.get("reason"))
                return
            text = message.get("text")
            raw: str | bytes = message["bytes"] if text is None else text
            # A burst of one client must not delay the others, nor one of a hundred sockets.
            await slices.take_turn(partial(self._take, raw), address)

    def _take(self, raw: str | bytes) -> None:
        with self.contained():
            self.take_frame(raw)

    async def _write(self) -> None:
        over = False
        while not over:
            with self.contained():
                await self.writer.run()
                over = True

    @contextmanager
    def contained(self) -> Iterator[None]:
        """Every way in goes through here: errors end this socket, no other."""
        try:
            yield
        except WriterFull:
            self.lost(SLOW_READER)
        except Exception:
            self.reporter.bug()
            self.faulted()


def address_of(scope: Scope) -> str:
    """Who asks, for the log: address and port."""
    return "{}:{}".format(*(scope.get("client") or ("unknown", 0)))


def abort(scope: Scope, reason: str) -> None:
    """Cut a connection, of a socket or of an answer over HTTP."""
    cast("Callable[[str], None]", scope["extensions"][ABORT_EXTENSION])(reason)
