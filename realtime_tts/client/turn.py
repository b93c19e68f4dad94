"""Turn: one stream of text in and of packets out, as its caller sees it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import nullcontext
from typing import Self, TypeVar

from realtime_tts.client.connection import Connection
from realtime_tts.client.inbox import Inbox, turn_lost
from realtime_tts.client.resuming import all_heard, done_here, joined, most_chars, weakly
from realtime_tts.client.turn_view import TurnView, check_position
from realtime_tts.errors import ClientError, ConnectionLost, RealtimeTTSError
from realtime_tts.protocol import messages as m

T = TypeVar("T")

_MOST_IN_VAIN = 8
"""Sessions in a row without a packet before a turn fails, which may be the reason for it."""


class Turn(TurnView):
    """One turn. Made by `RealtimeTTS.turn()`; it reaches the server with its first text.

    Send text and read packets at the same time, from two tasks, or use `RealtimeTTS.speak`.
    Iterating yields packets (24 kHz, mono, s16le, at most 4,096 bytes, if the session asked for no
    other format) until the turn is over, and then raises what ended it early: TurnError or
    OverloadedError from the server, ConnectionLost, nothing after an interrupt. Packets are queued.

    Leaving the loop early (`break`, an exception, a cancelled task) interrupts the turn, and so
    does leaving `async with await tts.turn() as turn` before it is over.
    """

    def __init__(
        self,
        turn_id: str,
        connect: Callable[[], Awaitable[Connection]],
        beginning: asyncio.Lock | None = None,
        *,
        goes_on: bool = False,
        traceparent: str | None = None,
    ) -> None:
        """`beginning`: held while a turn begins in a session, so that turns begin in their order.
        `goes_on`: whether it goes on in another session when its socket is lost. `traceparent`: the
        parent of its span."""
        super().__init__(Inbox(turn_id), [])
        self._connect = connect
        self._traceparent = traceparent
        self._beginning = beginning or asyncio.Lock()
        self._connection: Connection | None = None
        self._script: list[m.Message] = []  # text, flushes and the end
        self._script_sent = 0  # how many of them, in the present session
        self._placing = asyncio.Lock()
        """Held while something gets its place in the script: the first text connects before, and
        what other tasks send, flush or end meanwhile comes behind it."""
        self._sending = asyncio.Lock()
        self._between = False  # two sessions: the socket was lost
        self._begun = False  # whether the present session has had the turn's beginning
        self._in_vain = 0  # sessions in a row without a new packet
        self._going_on: asyncio.Task[None] | None = None
        if goes_on:
            self._inbox.goes_on = weakly(self._lost)
        self._ended = False
        self._stopped = False
        self._abandoned = False  # the server was asked for what was heard, without a position
        self._played_ms: float | None = None  # how much was heard when it was stopped
        self._samples_before = -1  # samples received when it last went on

    # Text in

    async def send(self, delta: str, *, end: bool = False) -> None:
        """Send a text delta, as it came from the language model: no trimming, no joining.

        `end` ends the text with it, which lets the server see short texts whole. Once the turn is
        over or was interrupted this does nothing, since a sender cannot know that in time. Raises
        ClientError after `end()`, ConnectionLost, and on the first delta what `connect` raises.
        """
        if self._stopped or self.over:
            return
        async with self._placing:
            await self._place(delta, end)
        await self._send_script()

    async def flush(self) -> None:
        """Have the text sent so far spoken to its end; the turn goes on."""
        if self._stopped or self.over:
            return
        async with self._placing:
            if not (self._connection is None or self._ended or self._stopped or self.over):
                self._script.append(m.Flush(turn_id=self.turn_id))
        await self._send_script()

    async def end(self) -> None:
        """Report that no more text comes. A turn without any text is over at once. Idempotent."""
        if self._stopped or self.over:
            return
        async with self._placing:
            self._place_end()
        await self._send_script()

    # Packets out

    def __aiter__(self) -> AsyncGenerator[bytes, None]:
        # A generator of its own per loop: when the loop is left, it is closed at once.
        return self._packets()

    async def _packets(self) -> AsyncGenerator[bytes, None]:
        async with self:
            while (packet := await self._inbox.next()) is not None:
                yield packet

    async def __anext__(self) -> bytes:
        packet = await self._inbox.next()
        if packet is None:
            raise StopAsyncIteration
        return packet

    async def played(self, played_ms: float) -> None:
        """Report how much the listener has heard, for a better schedule and `text_spoken`."""
        check_position(played_ms)
        if self._connection is not None and not (self._stopped or self._between):
            await self._submit(m.Played(turn_id=self.turn_id, played_ms=played_ms))

    # Stopping

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        if not self.over:
            self.abandon()

    async def interrupt(self, played_ms: float | None = None) -> m.TurnInterrupted:
        """Stop speaking. From this call on no further packet comes out of the turn.

        `played_ms`: how much the listener has heard; without it the server estimates. Works on a
        turn that is done as well, while its listener still hears it. If the connection breaks or
        the server does not answer, the answer comes from what the client knows of a turn that can
        go on elsewhere; for any other turn this raises ConnectionLost.
        """
        check_position(played_ms)
        self._stopped = True
        self._inbox.silence()
        if self._connection is None:
            self._finish_here("interrupted")
            return self._heard_all(0.0)
        estimate = None
        if self._has_no_server:
            self._interrupted_here(played_ms)
        elif self._abandoned:
            estimate = await self._answer(self._inbox.wait_interrupted())
            if played_ms is not None and estimate is not None:
                self._inbox.interrupted = None  # ask again, now that more is known
        if self._inbox.interrupted is None:
            self._abandoned = False
            self._interrupt_later(played_ms)
        try:
            report = await self._answer(self._inbox.wait_interrupted())
        except ConnectionLost:
            if self.result is None or not self._inbox.resume.samples:
                raise
            report = self._inbox.resume.report(self.text, played_ms)
        if report is None:  # a turn that the server does not know never ends there
            self._finish_here("interrupted")
        await self._answer(self._inbox.wait_over())
        return report or estimate or self._heard_all(played_ms)

    def abandon(self, error: BaseException | None = None, played_ms: float | None = None) -> None:
        """Stop speaking without waiting for an answer; callable where nothing can be awaited.

        With `error`, reading from the turn raises it. `played_ms`: as in `interrupt`. Does nothing
        more if the turn was stopped before.
        """
        check_position(played_ms)
        was_stopped, self._stopped = self._stopped, True
        self._inbox.silence()
        if error is not None:
            self._inbox.fail(error)
        if self._connection is None:
            self._finish_here("interrupted")
        elif self._has_no_server:
            self._interrupted_here(played_ms)
        elif self._inbox.result is None and not was_stopped:
            self._abandoned = played_ms is None
            self._interrupt_later(played_ms)

    # Steps

    async def _place(self, delta: str, end: bool) -> None:
        """Append a text delta to the script. The first one connects."""
        if self._stopped or self.over:
            return
        if self._ended:
            raise ClientError(
                f"turn {self.turn_id}: text after its end; open the next turn with tts.turn()"
            )
        if not delta:
            if end:
                self._place_end()
            return
        if not isinstance(delta, str):  # bytes would be spoken as base64
            raise ClientError(f"a text delta is a string, found {type(delta).__name__}")
        connection = await self._opened()
        if self._stopped:  # while it connected: the server must not get this turn
            return
        self._ended = end
        self._sent.append(delta)
        most = most_chars(connection.ready.limits)
        for start in range(0, len(delta), most):
            last = end and start + most >= len(delta)
            piece = delta[start : start + most]
            parent = None if self._script else self._traceparent
            text = m.Text(text=piece, turn_id=self.turn_id, end=last, traceparent=parent)
            self._script.append(text)

    def _place_end(self) -> None:
        if self._ended or self._stopped:
            return
        self._ended = True
        if self._connection is None:
            self._finish_here("complete")
        elif not self.over:
            self._script.append(m.TurnEnd(turn_id=self.turn_id))

    async def _opened(self) -> Connection:
        if self._connection is None:
            async with self._beginning:
                connection = await self._connect()
                connection.join(self._inbox)
                self._connection = connection
                self._inbox.settings = connection.ready.settings
        return self._connection

    @property
    def _has_no_server(self) -> bool:
        """Whether no server speaks the turn now, and none is getting its beginning."""
        return self._between or not (self._begun or self._sending.locked())

    def _interrupt_later(self, played_ms: float | None) -> None:
        """Have the server stop the turn, whatever becomes of the caller. It must not get the
        interrupt before the turn."""
        assert self._connection is not None, "a turn reaches the server with its first text"
        self._played_ms = played_ms
        interrupt = m.Interrupt(turn_id=self.turn_id, played_ms=played_ms)
        self._connection.send_later(interrupt, behind=None if self._begun else self._sending)

    async def _submit(self, message: m.Message) -> None:
        assert self._connection is not None, "a turn reaches the server with its first text"
        try:
            await self._connection.send(message)
        except ConnectionLost:
            if self._between or (self._inbox.goes_on is not None and self._inbox.failure is None):
                return  # it is sent again in the next session, or answered here
            # The inbox knows more than the socket: how far this turn had come.
            raise self._inbox.failure or self._connection.lost or ConnectionLost("lost") from None

    async def _send_script(self) -> None:
        """Send what the server has not got yet; between two sessions, the next one gets it."""
        if not self._script or self.over:
            return
        # Until the turn has begun, the session may have another turn's settings.
        beginning = nullcontext() if self._script_sent else self._beginning
        async with beginning, self._sending:
            await self._send_unsent()

    async def _send_unsent(self) -> None:
        while self._script_sent < len(self._script) and not (self._between or self.over):
            message = self._script[self._script_sent]
            self._script_sent += 1
            try:
                await self._submit(message)
            finally:
                self._begun = True  # also where it was cancelled, perhaps after it had left

    # Going on

    def _lost(self, error: ConnectionLost) -> None:
        """Handle the loss of the socket in the middle of the turn."""
        self._between = True
        if self._stopped:
            self._interrupted_here(self._played_ms)
        else:
            self._going_on = asyncio.create_task(self._go_on(error), name="realtime-tts resuming")

    async def _go_on(self, error: ConnectionLost) -> None:
        """Send everything again in another session, with the state that the turn had reached."""
        samples = self._inbox.resume.samples
        self._in_vain = 0 if samples > self._samples_before else self._in_vain + 1
        self._samples_before = samples
        try:
            if self._in_vain > _MOST_IN_VAIN:
                raise error
            async with self._beginning:
                connection = await self._connect()
                if self.over:
                    return
                if not connection.resumes:
                    raise error
                async with connection.settings(self._inbox.settings), self._sending:
                    await self._begin_again(connection)
        except RealtimeTTSError as failed:
            self._inbox.fail(turn_lost(error, self._inbox, failed))

    async def _begin_again(self, connection: Connection) -> None:
        """Send all there is in this session. Text that is sent meanwhile comes behind it."""
        if self.over:  # interrupted while the session got the turn's settings
            return
        self._inbox.resumes += 1
        self._connection, self._between, self._begun = connection, False, False
        connection.join(self._inbox)
        most = most_chars(connection.ready.limits)
        self._script, self._script_sent = joined(self._script, most), 0
        for message in self._inbox.resume.messages(self._inbox.words, self._traceparent):
            await self._submit(message)
        await self._send_unsent()

    def _interrupted_here(self, played_ms: float | None) -> None:
        """Answer an interrupt without a socket, by the states that the server has sent."""
        if self.over:
            return
        report = self._inbox.resume.report(self.text, played_ms)
        self._inbox.was_interrupted(report)
        self._finish_here("interrupted", report.samples_sent)

    async def _answer(self, waiting: Awaitable[T]) -> T:
        assert self._connection is not None, "only a server can answer"
        timeout = self._connection.reply_timeout
        try:
            async with asyncio.timeout(timeout):  # wait_for of Python 3.11 may lose a cancellation
                return await waiting
        except TimeoutError:
            await self._connection.give_up(f"no answer to an interrupt within {timeout:g} s")
            raise self._connection.lost or ConnectionLost("lost") from None

    def _finish_here(self, reason: str, samples: int = 0) -> None:
        """End the turn without the server having reported its end."""
        if not self.over:
            self._inbox.done(done_here(self.turn_id, reason, samples, len(self.text)))

    def _heard_all(self, played_ms: float | None) -> m.TurnInterrupted:
        """Return the report about a turn that the server has forgotten, or without text."""
        samples = 0 if self.result is None else self.result.samples
        return all_heard(self.turn_id, self.text, samples, played_ms)
