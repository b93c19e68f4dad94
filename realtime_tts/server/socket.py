"""ServedSocket: one accepted WebSocket of any API: its reader, its writer, its log, and the
containment of errors.

There are two tasks per socket. The reader never waits for speech. Nothing that a client sends ends
another client's socket, and every failure is logged.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import secrets
from collections.abc import Callable
from functools import partial
from typing import cast

from starlette.routing import WebSocketRoute
from starlette.types import Scope
from starlette.websockets import WebSocket, WebSocketDisconnect

from realtime_tts.access.account import Account
from realtime_tts.background import cancel
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.server.auth import account_of, echoed_subprotocol
from realtime_tts.server.contained import Contained
from realtime_tts.server.front import Front
from realtime_tts.server.guarded import ABORT_EXTENSION, UNREAD_EXTENSION
from realtime_tts.server.refusals import SLOW_READER
from realtime_tts.server.registered import Registered
from realtime_tts.server.writer import Writer, WriterFull
from realtime_tts.tracing.context import REFUSED, traceparent_of

BAD_REQUEST = "bad_request"
"""The code of a refusal for an address that asks for something that does not exist."""


class ServedSocket(Registered, abc.ABC):
    """A socket that is registered with the front. `serve` is the endpoint; subclasses say what to
    do with a message, and after a bug."""

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        self.front = front
        self.websocket = websocket
        self.name = secrets.token_hex(6)
        """A name that no other socket has."""
        self.client = address_of(websocket.scope)
        self.address = front.addresses.of(websocket.scope.get("client"))
        self.bad = self.address.bad_messages(front.config.limits.max_bad_messages)
        """Times of bad messages, of this socket and of earlier ones from its address."""
        self.traceparent = traceparent_of(websocket.scope)
        self.reporter = front.reporter(self.name, self.client, self.traceparent)
        self.writer = Writer(websocket, front.max_outbox())

    @property
    def account(self) -> Account:
        """The account of the socket; `FREE` until a late key has come."""
        return account_of(self.websocket.scope)

    @classmethod
    def route(cls, front: Front, path: str) -> WebSocketRoute:
        """Return the route of such sockets."""
        return WebSocketRoute(path, partial(cls.serve, front))

    @classmethod
    async def serve(cls, front: Front, websocket: WebSocket) -> None:
        """Serve a socket until it is gone. RequestError from the constructor refuses it as well."""
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
            return  # it was gone before the handshake was answered

    @classmethod
    def subprotocol(cls, scope: Scope) -> str | None:
        """Return the subprotocol to accept: the first offer that is no key."""
        return echoed_subprotocol(scope)

    @classmethod
    @abc.abstractmethod
    async def refuse(cls, websocket: WebSocket, failure: TurnFailure) -> None:
        """Refuse with a status before the upgrade, or, for a browser, with a close after it."""

    @abc.abstractmethod
    def opened(self) -> None:
        """Called when the socket was accepted."""

    @abc.abstractmethod
    def take_frame(self, raw: str | bytes) -> None:
        """Handle a message: str for a text frame, bytes for a binary one."""

    def unread(self) -> bool:
        """Return whether the client may not read the socket now, and so answer no ping."""
        return False

    @abc.abstractmethod
    def faulted(self) -> None:
        """End the socket as properly as possible, after a bug that was logged."""

    @abc.abstractmethod
    def gone(self) -> None:
        """Called when the socket is gone: must leave nothing running."""

    def lost(self, reason: str) -> None:
        """Drop the socket without a close; the reader sees that and cleans up."""
        self.writer.shut()
        abort(self.websocket.scope, reason)

    async def run(self) -> None:
        """Serve the socket until it is gone."""
        self.reporter.opened()
        self.websocket.scope.setdefault("extensions", {})[UNREAD_EXTENSION] = self.unread
        writer = asyncio.create_task(self._write(), name=f"writer-{self.name}")
        try:
            with self.contained():
                self.opened()
            await self._read()
        finally:
            self.gone()
            self.address.remember_bad(self.bad)
            self.writer.shut()
            await cancel(writer)

    async def _read(self) -> None:
        slices, address = self.front.slices, self.address.name
        while True:
            message = await self.websocket.receive()
            if message["type"] == "websocket.disconnect":
                self.reporter.closed(message.get("code"), message.get("reason"))
                return
            text = message.get("text")
            raw: str | bytes = message["bytes"] if text is None else text
            # Neither a burst of one client nor a hundred sockets of it may delay the others.
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

    def contained(self) -> Contained:
        """Return a block whose errors end only this socket. Every call goes through one."""
        return Contained(self._caught)

    def _caught(self, error: Exception) -> None:
        if isinstance(error, WriterFull):
            self.lost(SLOW_READER)
            return
        self.reporter.bug()
        self.faulted()


def address_of(scope: Scope) -> str:
    """Return the client's address and port, for the log."""
    return "{}:{}".format(*(scope.get("client") or ("unknown", 0)))


def abort(scope: Scope, reason: str) -> None:
    """Cut the connection of a socket or of an HTTP answer."""
    cast("Callable[[str], None]", scope["extensions"][ABORT_EXTENSION])(reason)
