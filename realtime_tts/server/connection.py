"""One socket of the native protocol: reader → session → effects → speech → writer.

Nothing in the reader waits for speech, and what happens between the tasks are plain calls on the
event loop, so nobody sees a step half done:

- the reader gives each message to the `Session`, and the effects it answers with are carried out in
  their order, one after another: what comes of one (an interrupted turn lets the next one begin) is
  behind all that was there before;
- what a `Speech` gives out are effects like those, and reach the writer in the same order;
- the writer tells when a packet, and when the last one of a turn, was handed to the socket.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from starlette.websockets import WebSocket

from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
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
    TurnFailure,
)
from realtime_tts.protocol.messages import CloseCode, TurnWords, Word
from realtime_tts.protocol.parsing import encode
from realtime_tts.protocol.session import Session
from realtime_tts.server.deadline import Alarm
from realtime_tts.server.engine_host import EngineHost
from realtime_tts.server.reporter import SessionReporter
from realtime_tts.server.socket import ServedSocket
from realtime_tts.server.speech import Delivery, Done, Sound, Speech
from realtime_tts.server.writer import Messages
from tts_scheduler import FeedPace

_REMEMBERED_TURNS = 4


class Connection(ServedSocket):
    """One accepted WebSocket. `run` returns when the socket is gone."""

    sessions = 1

    def __init__(
        self,
        websocket: WebSocket,
        session_id: str,
        session: Session,
        engine: EngineHost,
        reporter: SessionReporter,
        max_outbox_bytes: int,
    ) -> None:
        super().__init__(websocket, session_id, reporter, max_outbox_bytes)
        self.session = session
        self._engine = engine
        self._max_outbox_bytes = max_outbox_bytes
        self._effects: deque[Effect | _Output] = deque()
        self._carrying_out = False
        self._turn: _Turn | None = None
        self._past: deque[_Turn] = deque(maxlen=_REMEMBERED_TURNS)
        self._turns = 0
        self._feed_pace = FeedPace()
        self._alarm = Alarm(time.monotonic, self._on_time)

    @property
    def open_turns(self) -> int:
        """Turns that are spoken or wait."""
        return len(self.session.queued) + (self.session.on_air is not None)

    def drain(self) -> None:
        """The server is going: finish the turns begun, then close."""
        with self.contained():
            self._carry_out(self.session.drain())

    def end(self, why: TurnFailure) -> None:
        """The server goes now."""
        with self.contained():
            self._carry_out(self.session.fail(why.code, why.message, CloseCode.GOING_AWAY))

    # ServedSocket.

    def opened(self) -> None:
        self._carry_out(self.session.begin(self.websocket.url.query))

    def take_frame(self, raw: str | bytes) -> None:
        self._carry_out(self.session.receive(raw, time.monotonic()))

    def gone(self) -> None:
        turn = self._turn
        if turn is not None:
            turn.speech.silence()
            utterances = turn.speech.utterances
            self.reporter.done(
                turn.id, "closed", utterances.stats(), utterances.listener.text_chars
            )
        with self.contained():
            self._carry_out(self.session.closed())
        if turn is not None:
            turn.speech.close()
        self._alarm.stop()

    def faulted(self) -> None:
        """The session may be in any state: it says what it still can, and is closed in any case."""
        try:
            message = "a fault of the server; the session cannot go on"
            self._carry_out(self.session.fail("internal", message, CloseCode.INTERNAL))
        except Exception:
            self.reporter.bug()
        if self._turn is not None:
            self._turn.speech.silence()
        self.writer.close(CloseCode.INTERNAL, "internal")

    def lost(self, reason: str) -> None:
        if self._turn is not None:
            self._turn.speech.silence()
        super().lost(reason)

    def settled(self) -> None:
        self._alarm.set(self.session.next_deadline())

    def _on_time(self) -> None:
        with self.contained():
            self._carry_out(self.session.poll(time.monotonic()))

    # Session → effects → speech.

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        """These behind what is under way: the one loop that everything goes through."""
        self._effects.extend(effects)
        if self._carrying_out:
            return
        self._carrying_out = True
        try:
            while self._effects:
                self._do(self._effects.popleft())
        finally:
            self._carrying_out = False
            self._effects.clear()

    def _do(self, effect: Effect | _Output) -> None:
        match effect:
            case Send(message):
                self.reporter.message(message)
                self.writer.put(encode(message))
            case _Output(turn, output):
                if turn is self._turn:  # else it was interrupted meanwhile
                    self._put(turn, output)
            case FeedText(turn_id, text):
                self._on_air(turn_id).speech.feed(text)
            case FlushText(turn_id):
                self._on_air(turn_id).speech.flush()
            case EndText(turn_id):
                self._on_air(turn_id).speech.cut()
            case OpenTurn():
                self._open(effect)
            case InterruptTurn(turn_id, played_samples):
                self._interrupt(self._on_air(turn_id), played_samples)
            case ReportHeard(turn_id, played_samples):
                found = self._find(turn_id)
                report = None if found is None else found.speech.silence(played_samples)
                self._carry_out(self.session.turn_heard(turn_id, report))
            case ReportPlayed(turn_id, played_samples):
                found = self._find(turn_id)
                if found is not None:
                    found.speech.utterances.played(played_samples, time.monotonic())
            case Close(code, reason):
                self.writer.close(code, reason)

    def _open(self, effect: OpenTurn) -> None:
        assert self._turn is None, "the session opens one turn at a time"
        self._turns += 1
        settings = effect.settings
        speech = Speech(
            f"{self.name}-{self._turns}",
            settings,
            self._engine,
            Delivery(),
            self._max_outbox_bytes,
            contained=self.contained,
            on_output=self._on_output,
            listener_free_at=self._past[-1].heard_at() if self._past else None,
            feed_pace=self._feed_pace,
        )
        self._turn = _Turn(effect.turn_id, speech, settings.word_times == "on")

    def _interrupt(self, turn: _Turn, played_samples: int | None) -> None:
        """Silence first: the engine stops, unsent packets go, and only then comes the answer."""
        report = turn.speech.silence(played_samples)
        self.writer.drop(turn)
        self._retire(turn)
        stats = turn.speech.utterances.stats()
        self._carry_out(self.session.turn_interrupted(turn.id, report, stats))

    # Speech → writer.

    def _on_output(self) -> None:
        turn = self._on_air()
        while (output := turn.speech.track.take()) is not None:
            if not turn.announced and isinstance(output, Sound):
                turn.announced = True
                layout = turn.speech.utterances.layout
                self._carry_out(self.session.turn_started(turn.id, layout))
            if self._carrying_out:
                self._effects.append(_Output(turn, output))
            else:
                self._put(turn, output)

    def _put(self, turn: _Turn, output: Sound | Done) -> None:
        if isinstance(output, Sound):
            self.writer.put(
                output.data,
                turn,
                size=output.samples * BYTES_PER_SAMPLE,
                taken=partial(turn.speech.track.taken, output),
                sent=partial(self._sent, turn),
            )
        elif turn.speech.utterances.has_speech:
            self.writer.put(None, turn, sent=partial(self._last_sent, turn))
        else:
            message = "the turn's text has nothing to speak"
            self._carry_out(self.session.warn("no_speakable_text", message, turn.id))
            self._turn_over(turn)

    def _sent(self, turn: _Turn) -> Messages:
        self.reporter.packet(turn.speech.track.sent() or 0.0)
        return self._words(turn) if turn.tells_words else ()

    def _last_sent(self, turn: _Turn) -> Iterator[str]:
        yield from self._words(turn)  # there are those that waited to learn where it ends
        with self.contained():
            if turn is self._turn:  # else it was interrupted while its last words were sent
                self._turn_over(turn)

    def _words(self, turn: _Turn) -> Iterator[str]:
        """What was spoken with the packets sent, until all of it was told."""
        while (words := self._words_due(turn)) is not None:
            yield encode(words)

    def _words_due(self, turn: _Turn) -> TurnWords | None:
        """The next of them, to a tenth of a millisecond."""
        words: tuple[Word, ...] = ()
        with self.contained():
            if turn.tells_words:
                words = tuple(
                    Word(text=text, start_ms=round(start * 1000, 1), end_ms=round(end * 1000, 1))
                    for text, start, end in turn.speech.take_words()
                )
        return TurnWords(turn_id=turn.id, words=words) if words else None

    # Turns.

    def _turn_over(self, turn: _Turn) -> None:
        """Everything of the turn has been handed to the socket."""
        self._retire(turn)
        utterances = turn.speech.utterances
        if utterances.failure is not None:
            effects = self.session.turn_failed(turn.id, utterances.failure, utterances.stats())
        else:
            effects = self.session.turn_finished(turn.id, utterances.reason, utterances.stats())
        self._carry_out(effects)

    def _on_air(self, turn_id: str | None = None) -> _Turn:
        assert self._turn is not None and turn_id in (None, self._turn.id), "not on the air"
        return self._turn

    def _find(self, turn_id: str) -> _Turn | None:
        known = [*self._past, self._turn]
        return next((turn for turn in known if turn and turn.id == turn_id), None)

    def _retire(self, turn: _Turn) -> None:
        turn.speech.close()
        self._turn = None
        self._past.append(turn)


@dataclass(slots=True, eq=False)
class _Turn:
    """A turn on the air, or heard of late."""

    id: str
    speech: Speech
    tells_words: bool
    announced: bool = False  # turn.started was sent

    def heard_at(self) -> float | None:
        """When the listener will have heard all of it; None if that is no matter."""
        return self.speech.utterances.listener.heard_at()


@dataclass(frozen=True, slots=True)
class _Output:
    """What a turn's speech gave."""

    turn: _Turn
    output: Sound | Done
