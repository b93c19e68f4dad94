"""RealtimeTTS: the asyncio client."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Self, Unpack

from realtime_tts.client.address import websocket_url
from realtime_tts.client.arguments import check_seconds, check_source, check_turn
from realtime_tts.client.connection import Connection, Target, seen
from realtime_tts.client.options import SessionOptions, merged, session_start
from realtime_tts.client.speech import Speech, TextSource
from realtime_tts.client.trust import trust_for
from realtime_tts.client.turn import Turn
from realtime_tts.errors import ClientError, ConfigError, OverloadedError, RealtimeTTSError
from realtime_tts.protocol.messages import DEFAULT_SERVER, Ready, SessionStart


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff with jitter; all values in seconds.

    `give_up_after` bounds the whole effort, waits included; 0 means one attempt and no more.
    """

    first: float = 0.1
    factor: float = 2.0
    longest: float = 5.0
    give_up_after: float = 30.0

    def __post_init__(self) -> None:
        numbers = (self.first, self.factor, self.longest, self.give_up_after)
        if not (
            all(isinstance(number, int | float) for number in numbers)
            and 0 < self.first <= self.longest
            and self.factor >= 1
            and self.give_up_after >= 0
        ):
            raise ConfigError(
                "a backoff needs first > 0, factor >= 1, longest >= first and give_up_after >= 0; "
                f"got {self}"
            )

    def delay(self, attempt: int, random: float) -> float:
        """Return the seconds before attempt number `attempt` (the first retry is 1).

        `random` in [0, 1) spreads the delay over its upper half, so that the clients of a restarted
        server do not all reconnect at the same moment.
        """
        # The exponent is bounded: 2.0 ** 5000 would overflow long before a user gives up.
        whole = min(self.longest, self.first * self.factor ** min(attempt - 1, 64))
        return whole * (0.5 + 0.5 * random)


CLOSED = "this client is closed; make a new one"


class RealtimeTTS:
    """A session with a server: `async with RealtimeTTS(...) as tts`.

    One socket, used for one turn after another; turns opened while one speaks wait at the server.
    When the socket is lost, its turns go on in another session, where their listener is, and the
    next `turn()` or `speak()` connects again; both wait as `backoff` says. With a backoff that
    gives up at once, or the option `resume="off"`, such turns end with ConnectionLost.

    Args:
        server: ws(s) or http(s) URL, or host:port; without a path `/v1/tts` is meant.
        api_key: sent as a bearer token.
        tls_ca: for wss, a PEM file of the certificates to trust in place of the machine's, such as
            the server's own (`serve --tls-self-signed`).
        backoff: waits between attempts to connect again.
        connect_timeout: seconds for one attempt.
        reply_timeout: seconds the server may take to answer settings or an interrupt.
        options: the session's settings, see SessionOptions.

    Raises ConfigError for an address or option that cannot be used.
    """

    def __init__(
        self,
        server: str = DEFAULT_SERVER,
        *,
        api_key: str | None = None,
        tls_ca: str | None = None,
        backoff: Backoff = Backoff(),
        connect_timeout: float = 10.0,
        reply_timeout: float = 10.0,
        **options: Unpack[SessionOptions],
    ) -> None:
        self.url = websocket_url(server)
        trust = trust_for(self.url, tls_ca)
        if not isinstance(backoff, Backoff):
            raise ConfigError(f"backoff is a realtime_tts.Backoff, found {backoff!r}")
        self._backoff = backoff
        self._goes_on = backoff.give_up_after > 0
        self._target = Target(
            self.url, api_key, connect_timeout, reply_timeout, trust, self._goes_on
        )
        session_start(options)  # refuse what cannot be used before anything is sent
        self._options: dict[str, Any] = merged({}, options)
        self._connection: Connection | None = None
        self._attempt: asyncio.Task[Connection] | None = None
        self._leaving: set[Connection] = set()
        self._connecting = asyncio.Lock()
        self._beginning = asyncio.Lock()
        self._closed = False
        self._turns = 0
        self._random = Random()

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    @property
    def ready(self) -> Ready:
        """What the server said about itself: voices, languages, effective settings, limits.

        Raises ClientError before the first connection.
        """
        if self._connection is None:
            raise ClientError("not connected yet: use `async with`, or await connect()")
        return self._connection.ready

    @property
    def connected(self) -> bool:
        """Whether the socket is open, as far as is known."""
        return self._connection is not None and self._connection.lost is None

    async def connect(self, *, retry_for: float = 0.0) -> None:
        """Connect now; without this the first turn does. Idempotent.

        `retry_for`: seconds to keep trying while nothing answers, for a server that is starting.
        Raises HandshakeRefused, CertificateRefused, OverloadedError, ConnectionLost, or
        RequestError for settings that the server cannot apply.
        """
        check_seconds("retry_for", retry_for, zero=True)
        await self._connected(retry_for)

    async def close(self) -> None:
        """Close the socket; a turn still running ends with ConnectionLost, and who waits for a
        connection gets ClientError. Idempotent."""
        self._closed = True
        if self._attempt is not None:
            self._attempt.cancel()
            await asyncio.wait([self._attempt])
        connections = {*self._leaving, self._connection}
        await asyncio.gather(*(each.close() for each in connections if each is not None))
        self._leaving.clear()

    async def configure(self, **options: Unpack[SessionOptions]) -> None:
        """Change settings for the turns that begin from now on, also after connecting again.

        None resets a setting to the server's default. Raises RequestError if the server cannot
        apply them, and then all stays as it was; ConfigError; ConnectionLost. Cancelling this ends
        the wait, and not the change.
        """
        start = session_start(options)
        # A task of its own: the next settings must not take the answer to these for theirs.
        changing = asyncio.create_task(self._change(start, options), name="realtime-tts settings")
        changing.add_done_callback(seen)
        await asyncio.shield(changing)

    async def turn(self, turn_id: str | None = None, *, traceparent: str | None = None) -> Turn:
        """Begin a new turn. Connects first where needed, so call it as early as you know of a
        reply.

        `turn_id`: 1 to 64 printable ASCII characters, new for this session; by default a number.
        `traceparent`: the parent of the turn's span, as in the W3C header. Raises what `connect`
        raises, and ClientError for an id or parent that cannot be used.
        """
        check_turn(turn_id, traceparent)
        await self._connected(self._backoff.give_up_after)
        self._turns += 1
        connect = partial(self._connected, self._backoff.give_up_after)
        turn_id = turn_id or f"turn-{self._turns}"
        return Turn(
            turn_id, connect, self._beginning, goes_on=self._goes_on, traceparent=traceparent
        )

    def speak(self, text: TextSource, *, traceparent: str | None = None) -> Speech:
        """Speak a text, or text deltas as they arrive; iterate over the result for the packets.

        `text` is a string, an iterable or an async iterable of strings. Sending and receiving go on
        at the same time. See Speech. `traceparent`: as in `turn`.
        """
        check_turn(None, traceparent)
        check_source(text)
        return Speech(partial(self.turn, traceparent=traceparent), text)

    async def _change(self, start: SessionStart, options: SessionOptions) -> None:
        async with self._beginning:
            connection = await self._connected(self._backoff.give_up_after)
            await connection.configure(start)
            self._options = merged(self._options, options)

    # Connecting

    async def _connected(self, retry_for: float) -> Connection:
        async with self._connecting:
            if self._closed:
                raise ClientError(CLOSED)
            current = self._connection
            if current is not None and current.lost is None and not current.leaving:
                return current
            self._leaving = {each for each in self._leaving if each.lost is None}
            if current is not None and current.lost is None:
                self._leaving.add(current)  # its turns are still to be finished there
            self._attempt = asyncio.create_task(self._connect(retry_for))
            try:
                return await self._attempt
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if self._closed and task is not None and not task.cancelling():
                    raise ClientError(CLOSED) from None
                raise

    async def _connect(self, retry_for: float) -> Connection:
        until = time.monotonic() + retry_for
        attempt = 0
        while True:
            try:
                opening = Connection.open(self._target, session_start(self._options))
                self._connection = await opening
                return self._connection
            except RealtimeTTSError as error:
                attempt += 1
                delay = self._backoff.delay(attempt, self._random.random())
                if isinstance(error, OverloadedError):
                    delay = max(delay, error.retry_after)
                if not error.retryable or time.monotonic() + delay > until:
                    raise
                await asyncio.sleep(delay)
