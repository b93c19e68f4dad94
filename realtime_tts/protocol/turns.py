"""What a client's messages and a connection's reports do to the turns of a session.

`turn.done` is sent exactly once for each turn that a `text` began, even for one that is refused.
"""

from __future__ import annotations

from msgspec.structs import replace

from realtime_tts.audio.formats import ENGINE_FORMAT
from realtime_tts.protocol import messages as m
from realtime_tts.protocol.effects import (
    Begun,
    Effect,
    HeardReport,
    InterruptTurn,
    OpenTurn,
    ReportHeard,
    ReportPlayed,
    Send,
    TurnFailure,
    TurnStats,
)
from realtime_tts.protocol.resuming import BroughtCodes
from realtime_tts.protocol.settings import Limits, SessionSettings
from realtime_tts.protocol.turn import Event, State, TurnRecord, TurnTable


class Turns:
    """The turns of a session. `settings` are those of turns that begin from now on; with
    `closed_to_new` none can begin."""

    def __init__(self, limits: Limits, settings: SessionSettings) -> None:
        self.settings = settings
        self.closed_to_new: TurnFailure | None = None
        self._limits = limits
        self._idle_after = limits.turn_idle_ms / 1000
        self._table = TurnTable()
        self._brought = BroughtCodes(limits)

    @property
    def on_air(self) -> TurnRecord | None:
        return self._table.on_air

    @property
    def queue(self) -> tuple[TurnRecord, ...]:
        return tuple(self._table.queue)

    def settle(self) -> list[Effect]:
        """Put the next turn on the air if the air is free. Must be called after every change."""
        turn = self._table.open_next()
        if turn is None:
            return []
        opened = OpenTurn(turn.id, turn.settings, turn.resume, turn.begun)
        turn.resume = None
        return [opened, *turn.release()]

    # From the client ------------------------------------------------------------------------

    def text(self, message: m.Text, now: float, refusal: TurnFailure | None = None) -> list[Effect]:
        """Take a text, or refuse it: with `refusal`, if there is one already."""
        turn = self._find_input(message.turn_id)
        if turn is None:
            return self._begin(message, now, refusal)
        if not turn.input_open:
            why = f"turn {turn.id} has ended: send the text with a new turn_id"
            return [Send(failed(turn.id, TurnFailure("turn_ended", why)))]
        turn.last_input = now
        late = turn.state is State.LATE
        effects = self._late(turn) if late else self._take(turn, message.text, refusal)
        return [*effects, *turn.end()] if message.end else effects

    def flush(self, message: m.Flush, now: float) -> list[Effect]:
        turn = self._find_input(message.turn_id)
        if turn is None or not turn.input_open:
            return _nothing_open("flush", turn, message.turn_id)
        turn.last_input = now
        return turn.flush()

    def end(self, message: m.TurnEnd) -> list[Effect]:
        turn = self._find_input(message.turn_id)
        if turn is None or not turn.input_open:
            return _nothing_open("turn.end", turn, message.turn_id)
        return turn.end()

    def codes(self, message: m.TurnCodes) -> list[Effect]:
        problem = self._brought.add(message)
        return [] if problem is None else [refused("bad_message", problem)]

    def resume(self, message: m.TurnResume, now: float) -> list[Effect]:
        if self._table.get(message.turn_id) is not None:
            why = f"this session knows turn {message.turn_id}: a turn is resumed in another one"
            return [refused("turn_known", why)]
        resume = self._brought.resume(message, now)
        settings = self._traced(message.traceparent)
        turn = self._table.begin(message.turn_id, settings, now, resume)
        return self._enqueue(turn, "")

    def interrupt(self, message: m.Interrupt) -> list[Effect]:
        position = _samples(message)
        if message.turn_id is None:
            return self._interrupt_all(position)
        turn = self._table.get(message.turn_id)
        return self._interrupt(turn, position) if turn else [_unknown(message.turn_id)]

    def played(self, message: m.Played) -> list[Effect]:
        position = _samples(message)
        assert position is not None, "the parser lets no `played` through without a position"
        if message.turn_id is None:
            turn = self._table.on_air or self._table.last_heard
            if turn is None:
                return [warning("no_active_turn", "played: no turn was on the air yet")]
        else:
            turn = self._table.get(message.turn_id)
            if turn is None:
                return [_unknown(message.turn_id)]
        return [] if turn.queued else [ReportPlayed(turn.id, position)]

    def end_all_input(self) -> list[Effect]:
        return [effect for turn in list(self._table.inputs) for effect in turn.end()]

    # From the connection --------------------------------------------------------------------

    def started(self, turn_id: str, layout: str) -> list[Effect]:
        turn = self._table.on_air
        if turn is None or turn.id != turn_id or turn.state is State.STOPPING:
            return []
        audio = turn.settings.audio
        told = None if audio == ENGINE_FORMAT else audio
        return [Send(m.TurnStarted(turn_id=turn_id, layout=layout, audio=told))]

    def left_air(
        self, turn_id: str, reason: str, stats: TurnStats, first: m.ServerMessage | None = None
    ) -> list[Effect]:
        """End the turn on the air; `first` is sent before its `turn.done`. Idempotent."""
        turn = self._table.on_air
        if turn is None or turn.id != turn_id:
            return []
        effects: list[Effect] = [Send(first)] if first else []
        return [*effects, *self._finish(turn, Event.FINISH, reason, stats)]

    # Time and endings -----------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        times = [turn.last_input for turn in self._table.inputs]
        return min(times) + self._idle_after if times else None

    def poll(self, now: float) -> list[Effect]:
        effects: list[Effect] = []
        for turn in list(self._table.inputs):
            if now < turn.last_input + self._idle_after:
                continue
            if turn.alive:
                turn.idled = True
                why = f"no text for {self._limits.turn_idle_ms} ms: the turn's text was ended"
                effects.append(warning("turn_idle", why, turn.id))
            effects += turn.end()
        return effects

    def stop_on_air(self, position: int | None = None) -> list[Effect]:
        turn = self._table.on_air
        if turn is None or not turn.may(Event.STOP):
            return []
        turn.move(Event.STOP)
        return [InterruptTurn(turn.id, position)]

    def drop_queued(self) -> list[Effect]:
        return [e for turn in self.queue for e in self._finish(turn, Event.FINISH, "closed")]

    # Steps ----------------------------------------------------------------------------------

    def _find_input(self, turn_id: str | None) -> TurnRecord | None:
        """Return the turn that a message about text means."""
        return self._table.newest_input() if turn_id is None else self._table.get(turn_id)

    def _begin(self, message: m.Text, now: float, refusal: TurnFailure | None) -> list[Effect]:
        settings = self._traced(message.traceparent)
        turn = self._table.begin(message.turn_id, settings, now)
        effects = self._enqueue(turn, message.text, refusal)
        return [*effects, *turn.end()] if message.end else effects

    def _traced(self, traceparent: str | None) -> SessionSettings:
        """Return the session's settings for a turn that may belong to a trace of its own."""
        return replace(self.settings, traceparent=traceparent) if traceparent else self.settings

    def _enqueue(
        self, turn: TurnRecord, text: str, refusal: TurnFailure | None = None
    ) -> list[Effect]:
        """Queue a turn that begins with this text, or refuse it."""
        if refusal := self._refusal(text) or refusal:
            done = self._finish(turn, Event.FINISH, "error")
            return [Send(failed(turn.id, refusal), turn.begun), *done]
        turn.begun = Begun(turn.begun.at, turn.begun.traceparent, self.on_air is not None)
        self._table.queue.append(turn)
        return turn.feed(text)

    def _refusal(self, text: str) -> TurnFailure | None:
        limit = self._limits.max_queued_turns
        if self.closed_to_new:
            return self.closed_to_new
        if len(self._table.queue) >= limit:
            return TurnFailure("queue_full", f"as many turns wait as may ({limit})", retryable=True)
        return self._too_long(text, 0)

    def _too_long(self, text: str, before: int) -> TurnFailure | None:
        limits = self._limits
        if len(text) > limits.max_text_chars:
            why = f"expected at most {limits.max_text_chars} characters, found {len(text)}"
            return TurnFailure("text_too_long", f"{why}; send it in pieces")
        if before + len(text) > limits.max_turn_chars:
            why = f"expected at most {limits.max_turn_chars} characters in a turn"
            return TurnFailure("turn_too_long", f"{why}, found {before + len(text)}")
        return None

    def _take(self, turn: TurnRecord, text: str, refusal: TurnFailure | None) -> list[Effect]:
        refusal = refusal or self._too_long(text, turn.chars)
        if refusal is None and turn.full:
            refusal = TurnFailure("turn_too_long", "an earlier text of this turn was refused")
        if refusal is None:
            return turn.feed(text)
        turn.full = True
        return [Send(failed(turn.id, refusal))]

    def _late(self, turn: TurnRecord) -> list[Effect]:
        if turn.warned_late:
            return []
        turn.warned_late = True
        why = f"turn {turn.id} is done: its further text is dropped until you end it"
        return [warning("late_text", why, turn.id)]

    def _interrupt_all(self, position: int | None) -> list[Effect]:
        for turn in list(self._table.inputs):
            if not turn.alive:
                turn.end()
        if self.on_air is None:
            return self._report_heard(self._table.last_heard, position)
        waiting = [effect for turn in self.queue for effect in self._interrupt(turn, None)]
        return [*waiting, *self._interrupt(self.on_air, position)]

    def _interrupt(self, turn: TurnRecord, position: int | None) -> list[Effect]:
        if turn is self.on_air:
            return self.stop_on_air(position)
        if not turn.queued:
            if turn.input_open:
                turn.end()
            return self._report_heard(turn, position)
        report = turn.heard_before()
        done = self._finish(turn, Event.STOP, "interrupted")
        return [Send(interrupted(turn.id, report)), *done]

    def _report_heard(self, turn: TurnRecord | None, position: int | None) -> list[Effect]:
        if turn is None:
            return [warning("no_active_turn", "interrupt: no turn is on the air or waiting")]
        return [ReportHeard(turn.id, position)]

    def _finish(
        self, turn: TurnRecord, event: Event, reason: str, stats: TurnStats | None = None
    ) -> list[Effect]:
        """End a turn with its `turn.done`, which is sent from nowhere else."""
        stats = stats or turn.stats_before()
        self._table.finish(turn, event)
        if turn.idled and reason == "complete":
            reason = "idle"
        done = m.TurnDone(
            turn_id=turn.id,
            reason=reason,
            samples=stats.samples,
            ttfa_ms=None if stats.ttfa_ms is None else round(stats.ttfa_ms, 1),
            underruns=stats.underruns,
            held_ms=round(stats.held_ms, 1),
            held_inside_word=stats.held_inside_word,
            moves=stats.moves,
            text_chars=turn.chars,
        )
        return [Send(done, turn.begun)]


def interrupted(turn_id: str, report: HeardReport) -> m.TurnInterrupted:
    return m.TurnInterrupted(
        turn_id=turn_id,
        samples_sent=report.samples_sent,
        played_ms=round(report.played_ms, 1),
        text_spoken=report.text_spoken,
        text_remaining=report.text_remaining,
    )


def failed(turn_id: str, failure: TurnFailure) -> m.ErrorMessage:
    return m.ErrorMessage(
        code=failure.code,
        message=failure.message,
        fatal=False,
        retryable=failure.retryable,
        retry_after_ms=failure.retry_after_ms,
        turn_id=turn_id,
    )


def _samples(message: m.Interrupt | m.Played) -> int | None:
    if message.played_samples is None and message.played_ms is not None:
        return round(message.played_ms * m.SAMPLE_RATE / 1000)
    return message.played_samples


def refused(code: str, message: str) -> Send:
    return Send(m.ErrorMessage(code=code, message=message, fatal=False, retryable=False))


def _unknown(turn_id: str) -> Send:
    failure = TurnFailure("unknown_turn", f"no turn {turn_id} in this session")
    return Send(failed(turn_id, failure))


def warning(code: str, message: str, turn_id: str | None = None) -> Send:
    return Send(m.WarningMessage(code=code, message=message, turn_id=turn_id))


def _nothing_open(kind: str, turn: TurnRecord | None, turn_id: str | None) -> list[Effect]:
    """Answer a `flush` or `turn.end` that finds no open text."""
    if turn is not None:
        return [warning("turn_already_ended", f"{kind}: turn {turn.id} has ended", turn.id)]
    if turn_id is not None:
        return [_unknown(turn_id)]
    return [warning("no_open_turn", f"{kind}: no turn is open for text")]
