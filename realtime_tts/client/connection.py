"""One socket: sends messages, and reads in one task, which gives everything to its turn."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from realtime_tts.audio.formats import AudioFormat
from realtime_tts.client.address import with_query
from realtime_tts.client.arguments import check_seconds
from realtime_tts.client.handshake import open_socket
from realtime_tts.client.inbox import Inbox
from realtime_tts.client.options import all_of
from realtime_tts.client.refusals import session_error, turn_error
from realtime_tts.client.trust import key_header
from realtime_tts.errors import ConnectionLost, RequestError
from realtime_tts.protocol import messages as m
from realtime_tts.protocol.parsing import ProtocolError, UnknownType, encode, parse_server_message
from realtime_tts.protocol.settings import Limits, SessionSettings
from realtime_tts.protocol.token_bucket import TokenBucket

log = logging.getLogger(__name__)

_GOING_AWAY = "going_away"
_UNKNOWN_TURN = "unknown_turn"
_CLOSED = "closed"

_RATE_SHARE = 0.9  # messages bunch up on the way, and the server has its own clock
_BURST_SHARE = 0.5  # the rest stays for what must never wait: interrupts and ends of turns


def send_rate(limits: Limits) -> TokenBucket:
    """Return the bucket that keeps a client below the rate beyond which the server ends its
    session.

    For a while, a fast language model sends more deltas a second than that. Speech takes twelve
    tokens a second, so waiting a few milliseconds before a delta costs nothing.
    """
    burst = max(1.0, limits.message_burst * _BURST_SHARE)
    return TokenBucket(limits.messages_per_second * _RATE_SHARE, burst)


@dataclass(frozen=True, slots=True)
class Target:
    """Where to connect, which certificates to trust there (wss:// only), and how many seconds to
    wait for the connection and for each answer."""

    url: str
    api_key: str | None = field(repr=False)
    connect_timeout: float
    reply_timeout: float
    trust: ssl.SSLContext | None = field(repr=False)
    resume: bool
    """Whether to ask for what lets turns go on in another session, unless the settings say more."""

    def __post_init__(self) -> None:
        check_seconds("connect_timeout", self.connect_timeout)
        check_seconds("reply_timeout", self.reply_timeout)
        key_header(self.api_key)  # refuse what cannot be sent


class Connection:
    """A socket with one session. `ready` has the server's latest settings and limits."""

    def __init__(self, target: Target, socket: ClientConnection) -> None:
        self.url = target.url
        self.reply_timeout = target.reply_timeout
        self.lost: ConnectionLost | None = None
        self._lost_for_good = True
        self.leaving = False
        """Whether the server finishes the turns it has and takes no new ones."""
        self._ready: m.Ready | None = None
        self._socket = socket
        # Weak: a turn that its caller dropped needs no inbox, and one that is done keeps its own
        # for a late interrupt.
        self._inboxes: WeakValueDictionary[str, Inbox] = WeakValueDictionary()
        self._on_air: Inbox | None = None
        self._ready_waiters: list[asyncio.Future[m.Ready]] = []
        self._fatal: m.ErrorMessage | None = None
        self._bucket = send_rate(Limits())
        self._background: set[asyncio.Task[None]] = set()
        self._reader = asyncio.create_task(self._read(), name="realtime-tts reader")

    @classmethod
    async def open(cls, target: Target, start: m.SessionStart) -> Connection:
        """Connect and set the session up.

        Raises HandshakeRefused, OverloadedError, ConnectionLost, or RequestError for settings that
        the server cannot apply.
        """
        url = with_query(target.url, resume="on") if target.resume else target.url
        socket = await open_socket(url, target.api_key, target.connect_timeout, target.trust)
        connection = cls(target, socket)
        try:
            await connection._await_ready(connection._expect_ready())
            if start != m.SessionStart():
                await connection.configure(start)
        except BaseException:
            await connection.close()
            raise
        return connection

    @property
    def ready(self) -> m.Ready:
        """The server's latest `ready` message."""
        assert self._ready is not None, "open() returns after the first ready"
        return self._ready

    async def configure(self, start: m.SessionStart) -> None:
        """Change the settings of later turns. Raises RequestError if the server refuses."""
        waiter = self._expect_ready()
        await self.send(start)
        await self._await_ready(waiter)

    @contextlib.asynccontextmanager
    async def settings(self, wanted: SessionSettings | None) -> AsyncIterator[None]:
        """Let turns that begin within the block have the settings `wanted`, as far as this server
        can apply them. A lost socket is not raised here: turns get it from `Inbox.lost`."""
        usual = self.ready.settings
        if wanted is None or wanted == usual:
            yield
            return
        with contextlib.suppress(RequestError, ConnectionLost):  # its own are the next best
            await self.configure(all_of(wanted))
        yield
        with contextlib.suppress(ConnectionLost):
            await self.configure(all_of(usual))

    def join(self, inbox: Inbox) -> None:
        """Give what arrives for this turn to `inbox` from now on. If the socket was lost meanwhile,
        `inbox` is notified of that."""
        if self.lost is None:
            self._inboxes[inbox.turn_id] = inbox
        else:
            lost = partial(inbox.lost, self.lost, for_good=self._lost_for_good)
            asyncio.get_running_loop().call_soon(lost)

    async def send(self, message: m.Message, *, urgent: bool = False) -> None:
        """Send a message, as late as the server's rate limit requires unless it is urgent.

        Raises ConnectionLost.
        """
        wait = self._bucket.owe(time.monotonic())
        if wait > 0 and not urgent:
            await asyncio.sleep(wait)
        try:
            await self._socket.send(encode(message))
        except ConnectionClosed as error:
            raise self._lost(error) from error

    def send_later(self, message: m.Message, *, behind: asyncio.Lock | None) -> None:
        """Send from where nothing can be awaited; a lost connection is ignored. `behind`: held
        while something is sent that must come first."""

        async def sending() -> None:
            if behind is not None:
                async with behind:
                    pass
            with contextlib.suppress(ConnectionLost):
                await self.send(message, urgent=True)

        task = asyncio.create_task(sending())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    @property
    def resumes(self) -> bool:
        """Whether the server sends the states with which turns go on in another session."""
        return self._ready is not None and self._ready.settings.resume == "on"

    @property
    def _for_good(self) -> bool:
        """Whether reconnecting is pointless: the server ended the session with a fatal error that
        is not retryable."""
        return self._fatal is not None and not self._fatal.retryable

    async def give_up(self, reason: str) -> None:
        """Drop the socket, because the server did not keep a promise: another socket may do."""
        self._end(ConnectionLost(f"{self.url}: {reason}"), for_good=not self.resumes)
        await self.close()

    async def close(self) -> None:
        """Close the socket; turns still running end with ConnectionLost. Idempotent."""
        self._end(ConnectionLost(f"the connection to {self.url} was closed by this client"))
        if self._background:
            await asyncio.wait(self._background, timeout=1.0)
        await self._socket.close()
        await self._reader

    # Reading

    async def _read(self) -> None:
        try:
            while True:
                data = await self._socket.recv()
                # Between turns there is no audio; if a server sends some, no turn can play it.
                if isinstance(data, bytes):
                    if self._on_air is not None:
                        self._on_air.packet(data)
                    continue
                try:
                    self._dispatch(parse_server_message(data))
                except UnknownType as error:
                    log.debug("ignored, the server is newer: %s", error)
        except ConnectionClosed as error:
            self._end(self._lost(error), for_good=self._for_good or not self.resumes)
        except ProtocolError as error:
            self._end(ConnectionLost(f"{self.url} sent what no realtime-tts server sends: {error}"))
            await self._socket.close(1002)

    def _dispatch(self, message: m.ServerMessage) -> None:
        match message:
            case m.Ready():
                if self._ready is None:
                    self._bucket = send_rate(message.limits)
                self._ready = message
                for waiter in self._take_waiters():
                    waiter.set_result(message)
            case m.TurnStarted():
                self._on_air = self._inboxes.get(message.turn_id)
                if self._on_air is not None:
                    self._on_air.layout = message.layout
                    self._on_air.audio = message.audio or AudioFormat()
            case m.TurnWords():
                if (inbox := self._inboxes.get(message.turn_id)) is not None:
                    inbox.words += message.words
                    inbox.words_exact = message.exact
            case m.TurnState():
                if (inbox := self._inboxes.get(message.turn_id)) is not None:
                    inbox.resume.store(message)
            case m.TurnInterrupted():
                if (inbox := self._inboxes.get(message.turn_id)) is not None:
                    inbox.was_interrupted(message)
            case m.TurnDone():
                self._turn_done(message)
            case m.WarningMessage():
                self._warning(message)
            case m.ErrorMessage():
                self._error(message)

    def _turn_done(self, message: m.TurnDone) -> None:
        inbox = self._inboxes.get(message.turn_id)
        if inbox is None:
            return
        if self._on_air is inbox:
            self._on_air = None
        if message.reason == _CLOSED and self.resumes and not self._for_good:
            return  # it goes on elsewhere, when this socket is gone
        inbox.done(message)

    def _warning(self, message: m.WarningMessage) -> None:
        inbox = self._inboxes.get(message.turn_id or "")
        if inbox is not None:
            inbox.warn(message)
            log.info("%s: %s", message.code, message.message)
        elif message.code == _GOING_AWAY:
            self.leaving = True
        else:
            log.warning("%s: %s", message.code, message.message)

    def _error(self, message: m.ErrorMessage) -> None:
        inbox = self._inboxes.get(message.turn_id or "")
        if inbox is not None and message.code == _UNKNOWN_TURN:
            inbox.forget()
            return
        if inbox is not None:
            inbox.refuse(turn_error(message))
            return
        # An error about a turn that was dropped is no answer to settings.
        waiters = [] if message.turn_id else self._take_waiters()
        for waiter in waiters:
            waiter.set_exception(session_error(message))
        if message.fatal:
            self._fatal = message
        elif not waiters:
            log.error("the server refused a message: %s: %s", message.code, message.message)

    # Ready

    def _expect_ready(self) -> asyncio.Future[m.Ready]:
        waiter: asyncio.Future[m.Ready] = asyncio.get_running_loop().create_future()
        waiter.add_done_callback(seen)
        if self.lost is not None:
            waiter.set_exception(self.lost)
        else:
            self._ready_waiters.append(waiter)
        return waiter

    async def _await_ready(self, waiter: asyncio.Future[m.Ready]) -> None:
        try:
            # wait_for of Python 3.11 may lose a cancellation
            async with asyncio.timeout(self.reply_timeout):
                await waiter
        except TimeoutError:
            await self.give_up(f"no `ready` within {self.reply_timeout:g} s")
            assert self.lost is not None, "give_up() says why"
            raise self.lost from None

    def _take_waiters(self) -> list[asyncio.Future[m.Ready]]:
        waiters, self._ready_waiters = self._ready_waiters, []
        return [waiter for waiter in waiters if not waiter.done()]

    # The end

    def _lost(self, error: ConnectionClosed) -> ConnectionLost:
        """Return the error to raise for a closed socket."""
        if self.lost is not None:
            return self.lost
        if self._fatal is not None:
            reason = f"the server ended the session: {self._fatal.code}: {self._fatal.message}"
        elif error.rcvd is not None:
            reason = f"the server closed the connection: {error.rcvd.code} {error.rcvd.reason}"
        else:
            reason = "the connection broke without a word"
        return ConnectionLost(f"{self.url}: {reason.rstrip()}")

    def _end(self, error: ConnectionLost, *, for_good: bool = True) -> None:
        if self.lost is not None:
            return
        self.lost, self._lost_for_good = error, for_good
        for waiter in self._take_waiters():
            waiter.set_exception(error)
        inboxes = list(self._inboxes.values())
        self._inboxes.clear()
        self._on_air = None
        for inbox in inboxes:
            inbox.lost(error, for_good=for_good)


def seen(waiter: asyncio.Future[Any]) -> None:
    """Retrieve an error that nobody may wait for any more; asyncio would log it."""
    if not waiter.cancelled():
        waiter.exception()
