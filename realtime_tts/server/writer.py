"""Writer: the only one that sends on a socket."""

from __future__ import annotations

from collections.abc import Callable

from starlette.websockets import WebSocket, WebSocketDisconnect

from realtime_tts.protocol.messages import TurnWords
from realtime_tts.protocol.parsing import encode
from realtime_tts.server.outbox import CloseItem, Outbox, Packet, TextItem, TurnOver
from realtime_tts.server.reporter import SessionReporter
from realtime_tts.server.turn import OnAirTurn


class Writer:
    """Empties an outbox into its socket, in order.

    `words_due` is asked after each packet of a turn that tells its words; `turn_over` is called
    when everything of a turn has been handed to the socket. Neither raises.
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
        words = self._words_due(turn) if turn.tells_words else None
        if words is not None:  # past the outbox: they are of this packet, and it was sent
            await self._text(encode(words))

    async def _text(self, text: str) -> None:
        await self._socket.send({"type": "websocket.send", "text": text})
