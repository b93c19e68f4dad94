"""One socket: reader → session → effects → engine, and engine → turn → outbox → writer.

Two tasks and one timer per socket, and nothing in the reader waits for speech. What happens between
the tasks are plain calls on the event loop, so nobody sees a step half done:

- the reader gives each message to the `Session` and carries out the effects it answers with;
- engine events, delivered once per engine step, become packets in the outbox;
- the writer empties the outbox into the socket and reports when a turn's last packet has left.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.websockets import WebSocket

from realtime_tts.audio import packets
from realtime_tts.engine.link import Audio, Ended, Event, Failed, Refused, Started
from realtime_tts.protocol.effects import (
    Close,
    Effect,
    EndText,
    FeedText,
    FlushText,
    InterruptTurn,
    OpenTurn,
    ReportHeard,
    ReportPlayed,
    Send,
)
from realtime_tts.protocol.messages import CloseCode, ServerMessage, TurnWords
from realtime_tts.protocol.parsing import encode
from realtime_tts.protocol.session import Session
from realtime_tts.server.deadline import Alarm
from realtime_tts.server.engine_host import EngineHost
from realtime_tts.server.outbox import (
    CloseItem,
    Outbox,
    OutboxFullError,
    Packet,
    TextItem,
    TurnOver,
)
from realtime_tts.server.reporter import SessionReporter
from realtime_tts.server.turn import OnAirTurn
from realtime_tts.server.turn_input import TurnInput
from realtime_tts.server.websocket import ABORT_EXTENSION, READING_SECONDS, SLOW_READER
from realtime_tts.server.writer import Writer

_REMEMBERED_TURNS = 4


class Connection:
    """One accepted WebSocket. `run` returns when the socket is gone."""

    def __init__(
        self,
        websocket: WebSocket,
        session_id: str,
        session: Session,
        engine: EngineHost,
        reporter: SessionReporter,
        max_outbox_bytes: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.session = session
        self._id = session_id
        self._socket = websocket
        self._engine = engine
        self._reporter = reporter
        self._clock = clock
        self._outbox: Outbox[OnAirTurn] = Outbox(max_outbox_bytes)
        self._turn: OnAirTurn | None = None
        self._input: TurnInput | None = None  # of that turn
        self._past: deque[OnAirTurn] = deque(maxlen=_REMEMBERED_TURNS)
        self._utterances = 0
        self._alarm = Alarm(clock, self._on_time)

    async def run(self) -> None:
        """Serve the socket until it closes; leaves nothing running in the engine."""
        self._reporter.opened()
        sending = Writer(
            self._socket, self._outbox, self._reporter, self._clock, self._words_due,
            self._on_turn_over,
        )  # fmt: skip
        writer = asyncio.create_task(sending.run(), name=f"writer-{self._id}")
        try:
            with self._contained():
                self._carry_out(self.session.begin(self._socket.url.query))
            await self._read()
        finally:
            if self._turn is not None:
                turn = self._turn
                self._drop_input()
                self._reporter.lost(turn.turn_id, turn.stats(), turn.text_chars)
            with self._contained():
                self._carry_out(self.session.closed())
            if self._turn is not None:
                self._turn.drop()
            self._outbox.shut()
            self._alarm.stop()
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    def drain(self) -> None:
        """The server is going: finish the turns begun, then close."""
        with self._contained():
            self._carry_out(self.session.drain())

    def fail(self, code: str, message: str, close_code: CloseCode) -> None:
        """End the session now, with an error that says why."""
        with self._contained():
            self._carry_out(self.session.fail(code, message, close_code))

    # Reader → session → effects → engine.

    async def _read(self) -> None:
        turn_at = self._clock()
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                self._reporter.closed(message.get("code"), message.get("reason"))
                return
            text = message.get("text")
            raw: str | bytes = message["bytes"] if text is None else text
            with self._contained():
                self._carry_out(self.session.receive(raw, self._clock()))
            if self._clock() - turn_at > READING_SECONDS:
                await asyncio.sleep(0)  # a burst of one client must not delay the others
                turn_at = self._clock()

    def _carry_out(self, effects: list[Effect]) -> None:
        now = self._clock()
        for effect in effects:
            match effect:
                case Send(message):
                    self._send(message)
                case FeedText(turn_id, text):
                    self._input_of(turn_id).feed(text)
                case FlushText(turn_id):
                    self._input_of(turn_id).flush()
                case EndText(turn_id):
                    self._input_of(turn_id).end()
                case OpenTurn():
                    self._open(effect)
                case InterruptTurn(turn_id, played_samples):
                    self._interrupt(self._on_air(turn_id), played_samples, now)
                case ReportHeard(turn_id, played_samples):
                    self._report_heard(turn_id, played_samples, now)
                case ReportPlayed(turn_id, played_samples):
                    self._report_played(turn_id, played_samples, now)
                case Close(code, reason):
                    self._outbox.put(CloseItem(code, reason))

    def _send(self, message: ServerMessage) -> None:
        self._reporter.message(message)
        self._outbox.put(TextItem(encode(message)))

    def _open(self, effect: OpenTurn) -> None:
        assert self._turn is None, "the session opens one turn at a time"
        self._utterances += 1
        self._turn = OnAirTurn(
            effect.turn_id,
            f"{self._id}-{self._utterances}",
            effect.settings,
            self._engine,
            self._on_event,
            listener_free_at=self._past[-1].heard_at() if self._past else None,
        )
        self._input = TurnInput(
            self._turn, self._engine.rounds, self._clock, self._contained, self._end_text
        )

    def _end_text(self) -> None:
        turn = self._turn
        assert turn is not None, "the input goes with its turn"
        was_over = turn.over  # by its speech: its TurnOver is on the way
        if turn.end(self._clock()):
            if turn.over and not was_over:  # all was spoken before, but the pause at the end
                self._put_packets(turn, turn.last_packets())
                self._outbox.put(TurnOver(turn))
        else:
            message = "the turn's text has nothing to speak"
            self._carry_out(self.session.warn("no_speakable_text", message, turn.turn_id))
            self._turn_over(turn)

    def _interrupt(self, turn: OnAirTurn, played_samples: int | None, now: float) -> None:
        """Silence first: the engine stops, unsent packets go, and only then comes the answer."""
        self._engine.cancel(turn.utterance_id)
        self._drop_input()
        self._outbox.drop(turn)
        report = turn.silence(played_samples, now)
        self._retire(turn)
        self._carry_out(self.session.turn_interrupted(turn.turn_id, report, turn.stats()))

    def _report_heard(self, turn_id: str, played_samples: int | None, now: float) -> None:
        turn = self._find(turn_id)
        report = None if turn is None else turn.silence(played_samples, now)
        self._carry_out(self.session.turn_heard(turn_id, report))

    def _report_played(self, turn_id: str, played_samples: int, now: float) -> None:
        turn = self._find(turn_id)
        if turn is not None:
            turn.played(played_samples, now)

    # Engine → turn → outbox.

    def _on_event(self, event: Event) -> None:
        turn = self._turn
        assert turn is not None and turn.utterance_id == event.id, "events end with their turn"
        with self._contained():
            match event:
                case Audio():
                    self._put_packets(turn, turn.audio(event))
                case Started(layout=layout):
                    turn.layout = layout
                case Ended() | Failed() | Refused():
                    self._engine.forget(event.id)
                    self._put_packets(turn, turn.ended(event, self._clock()))
                    if turn.over:
                        self._outbox.put(TurnOver(turn))

    def _put_packets(self, turn: OnAirTurn, due: list[packets.Packet]) -> None:
        if due and not turn.announced:
            turn.announced = True
            self._carry_out(self.session.turn_started(turn.turn_id, turn.layout))
        for data, samples in due:
            self._outbox.put(Packet(turn, data, samples))

    # From the writer.

    def _words_due(self, turn: OnAirTurn) -> TurnWords | None:
        words = None
        with self._contained():
            words = turn.words_due()
        return words

    def _on_turn_over(self, turn: OnAirTurn) -> None:
        with self._contained():
            if turn is self._turn:  # else it was interrupted while its last words were sent
                self._turn_over(turn)

    def _turn_over(self, turn: OnAirTurn) -> None:
        """Everything of the turn has been handed to the socket."""
        self._retire(turn)
        if turn.failure is not None:
            effects = self.session.turn_failed(turn.turn_id, turn.failure, turn.stats())
        else:
            effects = self.session.turn_finished(turn.turn_id, turn.reason, turn.stats())
        self._carry_out(effects)

    # Turns.

    def _on_air(self, turn_id: str) -> OnAirTurn:
        assert self._turn is not None and self._turn.turn_id == turn_id, "not on the air"
        return self._turn

    def _input_of(self, turn_id: str) -> TurnInput:
        self._on_air(turn_id)
        assert self._input is not None, "a turn on the air has an input"
        return self._input

    def _drop_input(self) -> None:
        if self._input is not None:
            self._input.drop()

    def _find(self, turn_id: str) -> OnAirTurn | None:
        known = [*self._past, self._turn]
        return next((turn for turn in known if turn and turn.turn_id == turn_id), None)

    def _retire(self, turn: OnAirTurn) -> None:
        turn.drop()  # one without speech has an encoder, too
        self._drop_input()
        self._turn = self._input = None
        self._past.append(turn)

    # Time, and what goes wrong.

    @contextmanager
    def _contained(self) -> Iterator[None]:
        """Every way into the session goes through here: errors end this session, no other."""
        try:
            yield
        except OutboxFullError:
            self._abort(SLOW_READER)
        except Exception:
            self._reporter.bug()
            self._fail_after_bug()
        else:
            self._alarm.set(self._next_due())

    def _fail_after_bug(self) -> None:
        """The session may be in any state: it says what it still can, and is closed in any case."""
        try:
            message = "a fault of the server; the session cannot go on"
            self._carry_out(self.session.fail("internal", message, CloseCode.INTERNAL))
        except Exception:
            self._reporter.bug()
        self._drop_input()
        if self._turn is not None:
            self._engine.cancel(self._turn.utterance_id)
        self._outbox.put(CloseItem(CloseCode.INTERNAL, "internal"))

    def _abort(self, reason: str) -> None:
        """Drop the socket; the reader is told and cleans up."""
        self._outbox.shut()
        self._drop_input()
        if self._turn is not None:
            self._engine.cancel(self._turn.utterance_id)
        abort: Callable[[str], None] = self._socket.scope["extensions"][ABORT_EXTENSION]
        abort(reason)

    def _next_due(self) -> float | None:
        """When the session, or text that is held back, wants `_on_time`."""
        text_due = None if self._waiting_turn is None else self._waiting_turn.text_deadline()
        dues = [due for due in (self.session.next_deadline(), text_due) if due is not None]
        return min(dues, default=None)

    @property
    def _waiting_turn(self) -> OnAirTurn | None:
        """The turn on the air, unless text of it is being taken in: then no text is held back."""
        return None if self._input is None or self._input.busy else self._turn

    def _on_time(self) -> None:
        now = self._clock()
        with self._contained():
            if self._waiting_turn is not None:
                self._waiting_turn.poll(now)
            self._carry_out(self.session.poll(now))
