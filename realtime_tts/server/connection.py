"""One socket of the native protocol: reader → session → effects → speech → writer.

The reader never waits for speech, and the tasks call each other directly on the event loop, so that
nothing sees a step half done:

- the reader gives each message to the `Session`, whose effects are carried out in order, one after
  another; an effect that another one causes (an interrupted turn lets the next begin) goes to the
  end of the list;
- the writer asks the turn on the air for its next frame when the socket has taken the one before.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from functools import partial

from starlette.types import Scope
from starlette.websockets import WebSocket

from realtime_tts.access.account import Account
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import (
    Begun,
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
    TurnStats,
)
from realtime_tts.protocol.messages import SUBPROTOCOL, CloseCode, ServerMessage, TurnDone
from realtime_tts.protocol.parsing import encode
from realtime_tts.protocol.session import ServerInfo, Session
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.alarm import Alarm
from realtime_tts.server.denials import is_page, refusal
from realtime_tts.server.front import SERVER_NAME, Front
from realtime_tts.server.refusals import GOING_AWAY, SLOW_READER
from realtime_tts.server.resumption import Resumption, made_by
from realtime_tts.server.session_turn import SessionTurn, TurnTraces
from realtime_tts.server.socket import ServedSocket
from realtime_tts.server.speech import Speech
from realtime_tts.server.state_signer import SECRET, StateSigner
from realtime_tts.server.track import Delivery
from tts_scheduler import FeedPace

_REMEMBERED_TURNS = 4


class Connection(ServedSocket):
    """One WebSocket of the native protocol."""

    sessions = 1

    def __init__(self, front: Front, websocket: WebSocket) -> None:
        super().__init__(front, websocket)
        info = front.info
        models = tuple(model.model for model in info.models)
        names = front.voice_names(self.account)
        told = ServerInfo(
            self.name, SERVER_NAME, info.model, names, info.languages, models, front.config.marking
        )
        defaults = front.settings(traceparent=self.traceparent)
        check = partial(_check, front, self.account)  # keeps no reference to the connection
        self.session = Session(told, defaults, front.limits, check, self.bad)
        self._effects: deque[Effect] = deque()
        self._carrying_out = False
        self._turn: SessionTurn | None = None
        self._traces = TurnTraces(front, self.reporter)
        self._past: deque[SessionTurn] = deque(maxlen=_REMEMBERED_TURNS)
        self._turns = 0
        self._feed_pace = FeedPace()
        self._alarm = Alarm(self._on_time)

    @classmethod
    def subprotocol(cls, scope: Scope) -> str | None:
        return SUBPROTOCOL if SUBPROTOCOL in scope.get("subprotocols", ()) else None

    @classmethod
    async def refuse(cls, websocket: WebSocket, failure: TurnFailure) -> None:
        error = refusal(failure)
        if not is_page(websocket.headers):
            await websocket.send_denial_response(error)
            return
        await websocket.accept(cls.subprotocol(websocket.scope))
        await websocket.send_text(bytes(error.body).decode())
        code = CloseCode.GOING_AWAY if failure.code == GOING_AWAY else CloseCode.TRY_AGAIN
        await websocket.close(code, failure.code)

    @property
    def open_turns(self) -> int:
        """The turns that are spoken or wait."""
        return len(self.session.queued) + (self.session.on_air is not None)

    def drain(self) -> None:
        """Finish the turns that have begun, then close: the server is shutting down."""
        with self.contained():
            self._carry_out(self.session.drain())

    @property
    def live_turns(self) -> int:
        return int(bool(self._turn and self._turn.speech.segments))

    def revoke(self, why: TurnFailure) -> None:
        """Close the socket, because its key is no longer valid."""
        with self.contained():
            self._carry_out(self.session.fail(why.code, why.message, CloseCode.UNAUTHORIZED))

    def end(self, why: TurnFailure) -> None:
        """Close the socket, because the server stops now."""
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
            chars, trace = utterances.listener.text_chars, self._traces.end(turn.id)
            self.reporter.done(turn.id, "closed", utterances.stats(), chars, turn.before, trace)
        with self.contained():
            self._carry_out(self.session.closed())
        if turn is not None:
            turn.close()
        # No cycle is left: only a full garbage collection, which stops everything, would find it.
        self._alarm.release()
        self._turn = None
        self._past.clear()

    def faulted(self) -> None:
        """End the session after a bug, in whatever state it is: say what can be said, and close."""
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

    def _on_time(self) -> None:
        with self.contained():
            self._carry_out(self.session.poll(time.monotonic()))

    # Session → effects → speech.

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        """Carry out the effects, after those that already wait; everything goes through here."""
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
        self._alarm.set(self.session.next_deadline())

    def _do(self, effect: Effect) -> None:
        match effect:
            case Send(message, begun):
                self._report(message, begun)
                self.writer.put(encode(message))
            case FeedText(turn_id, text):
                self._feed(self._on_air(turn_id).speech, text)
            case FlushText(turn_id):
                self._on_air(turn_id).speech.commit()
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

    def _feed(self, speech: Speech, text: str) -> None:
        ends = bool(self._effects) and isinstance(self._effects[0], EndText)
        try:
            if speech.failure is None:
                speech.feed(text, ends=ends)
                return
        except TurnFailure as failure:
            speech.fail(failure)
        speech.utterances.listener.unread += text

    def _open(self, effect: OpenTurn) -> None:
        assert self._turn is None, "the session opens one turn at a time"
        signer = StateSigner(self.websocket.scope.get(SECRET, b""))
        try:
            resumption = self._resumption(effect, signer)
            speech = self._speech(effect, resumption)
        except TurnFailure as failure:
            self._refuse_turn(effect, failure)
        except RequestError as error:  # a lexicon or a voice that was deleted
            self._refuse_turn(effect, TurnFailure(error.code, str(error)))
        else:
            self._turn = SessionTurn(
                effect.turn_id, speech, resumption, signer, self.changed, self.turn_over
            )

    def _speech(self, effect: OpenTurn, resumption: Resumption | None) -> Speech:
        """Open the speech of a turn. Raises TurnFailure and RequestError, as `open_speech` does."""
        self._turns += 1
        return self.front.open_speech(
            f"{self.name}-{self._turns}",
            effect.settings,
            self.reporter,
            Delivery(),
            self.account,
            resumption=resumption,
            reports=False,
            contained=self.contained(),
            listener_free_at=self._past[-1].heard_at() if self._past else None,
            feed_pace=self._feed_pace,
            trace=self._traces.maker(effect.turn_id, effect.begun, effect.settings),
        )

    def _resumption(self, effect: OpenTurn, signer: StateSigner) -> Resumption | None:
        """Return what was spoken of the turn elsewhere; warn the client if it cannot be used.
        Raises RequestError if a lexicon was deleted."""
        brought = effect.resume
        if brought is None:
            return None
        settings = self.front.pinned(effect.settings)
        info = self.front.engine.info_for(settings.model, settings.voice)
        resumption = Resumption(brought, made_by(settings, info), info, signer)
        if resumption.problem is not None:
            message = f"{resumption.problem}: the speech goes on at the next word"
            self._carry_out(self.session.warn("cannot_resume", message, effect.turn_id))
        return resumption

    def _refuse_turn(self, refused: OpenTurn, failure: TurnFailure) -> None:
        """Refuse a turn before anything is made for it, and drop its text."""
        of_text = (FeedText, FlushText, EndText)
        kept = [one for one in self._effects if not isinstance(one, of_text)]
        self._effects = deque(kept)
        stats = TurnStats(samples=refused.resume.samples if refused.resume else 0)
        self._carry_out(self.session.turn_failed(refused.turn_id, failure, stats))

    def _interrupt(self, turn: SessionTurn, played_samples: int | None) -> None:
        """Silence the turn: the engine stops, unsent packets are dropped, then comes the answer."""
        report = turn.speech.silence(played_samples)
        self.writer.drop(turn)
        self._warn_of_text(turn)
        self._retire(turn)
        stats = turn.speech.utterances.stats()
        self._carry_out(self.session.turn_interrupted(turn.id, report, stats))

    # Speech → writer.

    def changed(self, turn: SessionTurn) -> None:
        """Called when the turn's speech has something to give, or has ended."""
        speech = turn.speech
        if speech.failure is not None and speech.failure.code == SLOW_READER:
            self.lost(SLOW_READER)
        elif turn is self._turn:
            if not turn.announced and speech.track.waiting_bytes:
                turn.announced = True
                self._carry_out(self.session.turn_started(turn.id, speech.utterances.layout))
            if speech.track or speech.done or speech.failure is not None:
                self.writer.wake(turn)

    def turn_over(self, turn: SessionTurn, failure: TurnFailure | None = None) -> None:
        """Called when everything of the turn has been handed to the socket."""
        utterances = turn.speech.utterances
        self._warn_of_text(turn)
        if failure is None and not utterances.has_speech:
            message = "the turn's text has nothing to speak"
            self._carry_out(self.session.warn("no_speakable_text", message, turn.id))
        self._retire(turn)
        if failure is not None:
            effects = self.session.turn_failed(turn.id, failure, utterances.stats())
        else:
            effects = self.session.turn_finished(turn.id, utterances.reason, utterances.stats())
        self._carry_out(effects)

    def _warn_of_text(self, turn: SessionTurn) -> None:
        """Warn, before a turn ends, of text that could not be spoken, or not as it asked for."""
        for code, message in turn.speech.utterances.text_warnings:
            self._carry_out(self.session.warn(code, message, turn.id))

    # Turns.

    def _on_air(self, turn_id: str) -> SessionTurn:
        assert self._turn is not None and turn_id == self._turn.id, "not on the air"
        return self._turn

    def _report(self, message: ServerMessage, begun: Begun | None) -> None:
        turn_id = getattr(message, "turn_id", None) or ""
        trace = self._traces.of(turn_id, begun)
        if isinstance(message, TurnDone):
            self._traces.end(turn_id)
        self.reporter.message(message, self._before(message), trace)

    def _before(self, message: ServerMessage) -> TurnStats | None:
        """Return what other sockets contributed to the counts in a `turn.done`: everything, if the
        turn was never on the air here."""
        if not isinstance(message, TurnDone):
            return None
        turn = self._find(message.turn_id)
        return TurnStats(samples=message.samples) if turn is None else turn.before

    def _find(self, turn_id: str) -> SessionTurn | None:
        known = [*self._past, self._turn]
        return next((turn for turn in known if turn and turn.id == turn_id), None)

    def _retire(self, turn: SessionTurn) -> None:
        self._turn = None
        self._past.append(turn)
        turn.close()


def _check(front: Front, account: Account, settings: SessionSettings) -> None:
    """Raise RequestError for settings that this server cannot do, or this account may not use."""
    account.check_voice(settings.voice, front.info.default_voice)
    front.check_speech(settings)
