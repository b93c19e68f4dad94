"""Speaks text from any source: text is sent and packets are received at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Iterable,
)
from contextlib import aclosing

from realtime_tts.client.turn import Turn
from realtime_tts.errors import ClientError
from realtime_tts.protocol.messages import TurnDone, TurnInterrupted

TextSource = str | Iterable[str] | AsyncIterable[str]


class Speech:
    """A text that is being spoken, from `RealtimeTTS.speak`. Iterate over it once for the packets.

    Leaving the loop early (`break`, an exception, a cancelled task) interrupts the turn. So does an
    error in the text source, which the loop then raises as it is.
    """

    def __init__(self, open_turn: Callable[[], Awaitable[Turn]], text: TextSource) -> None:
        self._open_turn = open_turn
        self._text = text
        self._turn: Turn | None = None
        self._begun = False
        self._stopped = False

    @property
    def turn(self) -> Turn | None:
        """The turn that speaks the text, once iteration has begun."""
        return self._turn

    @property
    def result(self) -> TurnDone | None:
        """How the turn ended, once the server has reported it."""
        return self._turn.result if self._turn else None

    @property
    def interrupted(self) -> TurnInterrupted | None:
        """What was heard, if the turn was interrupted and the server has answered."""
        return self._turn.interrupted if self._turn else None

    def __aiter__(self) -> AsyncGenerator[bytes, None]:
        if self._begun:
            raise ClientError("a speech can be listened to once; call speak() again")
        self._begun = True
        # A generator of its own per loop: when the loop is left, it is closed at once.
        return self._packets()

    async def interrupt(self, played_ms: float | None = None) -> TurnInterrupted:
        """Stop speaking, from another task than the one that listens; its loop just ends.

        See `Turn.interrupt`.
        """
        self._stopped = True
        if self._turn is None:
            return TurnInterrupted(
                turn_id="", samples_sent=0, played_ms=0.0, text_spoken="", text_remaining=""
            )
        return await self._turn.interrupt(played_ms)

    async def _packets(self) -> AsyncGenerator[bytes, None]:
        turn = self._turn = await self._open_turn()
        if self._stopped:
            return
        feeder = asyncio.create_task(self._feed(turn), name="realtime-tts text")
        try:
            async with aclosing(aiter(turn)) as packets:
                async for packet in packets:
                    yield packet
        finally:
            feeder.cancel()
            await asyncio.wait([feeder])

    async def _feed(self, turn: Turn) -> None:
        """Send all text. Never raises: an error fails the turn, which raises it."""
        try:
            await self._send_all(turn)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or not task.cancelling():  # but something that the source waited for
                turn.abandon(ClientError("the text source was cancelled before its end"))
            raise
        except Exception as error:
            turn.abandon(error)  # no effect where the turn itself has failed already
        finally:
            if isinstance(self._text, AsyncGenerator):
                await self._text.aclose()  # closes the language model's response behind it

    async def _send_all(self, turn: Turn) -> None:
        if isinstance(self._text, str):
            await turn.send(self._text, end=True)
        elif isinstance(self._text, AsyncIterable):
            async for delta in self._text:
                await turn.send(delta)
        else:
            for delta in self._text:
                await turn.send(delta)
        await turn.end()
