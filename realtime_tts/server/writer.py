"""Writer: the only one that sends on a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.websockets import WebSocket, WebSocketDisconnect

from realtime_tts.protocol.messages import TurnWords
from realtime_tts.protocol.parsing import encode
from realtime_tts.server.outbox import CloseItem, Outbox, Packet, TextItem, TurnOver
from realtime_tts.server.reporter import SessionReporter
from realtime_tts.server.turn import OnAirTurn


class Writer:
    """Empties an outbox into its socket, in order.

    `words_due` is asked, until there are none, after each packet of a turn that tells its words
    and at its end; `turn_over` is called when everything of a turn has been handed to the socket,
    also of one that was interrupted meanwhile. Neither raises.
    """

    def __init__(
        self,
        socket: WebSocket,
        outbox: Outbox[OnAirTurn],
        reporter: SessionReporter,
        clock: Callable[[], float],
        words_due: Callable[[OnAirTurn], TurnWords | None],
        turn_over: Callable[[OnAirTurn], None],
    ) -> None:
        self._socket = socket
        self._outbox = outbox
        self._reporter = reporter
        self._clock = clock
        self._words_due = words_due
        self._turn_over = turn_over

    async def run(self) -> None:
        """Send until the socket is gone or was closed."""
        try:
            while True:
                match await self._outbox.take():
                    case Packet(turn, data, samples):
                        await self._packet(turn, data, samples)
                    case TextItem(text):
                        await self._text(text)
                    case TurnOver(turn):
                        if turn.tells_words:  # there are those that waited to learn where it ends
                            await self._words(turn)
                        self._turn_over(turn)
                    case CloseItem(code, reason):
                        await self._socket.close(code, reason)
                        return
        except (WebSocketDisconnect, OSError):
            return  # the reader hears it too and cleans up

    async def _packet(self, turn: OnAirTurn, data: bytes, samples: int) -> None:
        turn.packet_taken(samples)
        await self._socket.send({"type": "websocket.send", "bytes": data})
        self._reporter.packet(turn.packet_sent(samples, self._clock()))
        if turn.tells_words:
            await self._words(turn)

    async def _words(self, turn: OnAirTurn) -> None:
        """Past the outbox: they are of a packet that was sent."""
        while (words := self._words_due(turn)) is not None:
            await self._text(encode(words))
            await asyncio.sleep(0)  # of many words a few in each round of the event loop

    async def _text(self, text: str) -> None:
        await self._socket.send({"type": "websocket.send", "text": text})
