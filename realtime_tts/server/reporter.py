"""SessionReporter: the log lines and metrics of one session.

It sees the messages that go to the client, so the log, `/metrics` and the client cannot disagree.
Lengths are logged, text never is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from realtime_tts.logs import event
from realtime_tts.metrics import SLO_TTFA_SECONDS, Metrics
from realtime_tts.protocol.effects import Begun, TurnFailure, TurnStats
from realtime_tts.protocol.messages import (
    SAMPLE_RATE,
    CloseCode,
    ErrorMessage,
    Ready,
    ServerMessage,
    TurnDone,
)
from realtime_tts.server.contained import Contained
from realtime_tts.tracing.turn import TurnTrace

if TYPE_CHECKING:
    from realtime_tts.tracing.tracer import Tracer

log = logging.getLogger(__name__)

_REFUSALS = frozenset(
    {"overloaded", "engine_unavailable", "queue_full", "going_away", "rate_limited"}
)
_CLIENT_FAULTS = frozenset({"queue_full"})
"""Codes of failures that trying again may help, and that are not the server's fault."""
_KNOWN_CODES = frozenset(int(code) for code in CloseCode) | {1005, 1006, 1012}


class SessionReporter:
    """A session's log lines, counts and, with a `tracer`, traces. `traceparent`: its caller's."""

    def __init__(
        self,
        session_id: str,
        client: str,
        metrics: Metrics,
        tracer: Tracer | None = None,
        traceparent: str | None = None,
    ) -> None:
        self.session_id = session_id
        self._metrics = metrics
        self._tracer, self._traceparent = tracer, traceparent
        self.client = client
        self._turns = 0
        self._failed: tuple[str | None, str, bool] = None, "", False  # turn, code, our fault

    def trace(self, turn_id: str, begun: Begun, model: str | None = None) -> TurnTrace | None:
        """Begin the trace of a turn; return None if turns are not traced."""
        if self._tracer is None:
            return None
        return self._tracer.begin(turn_id, self.session_id, begun, model)

    def segments(
        self, traceparent: str | None, model: str
    ) -> Callable[[str, bool], TurnTrace | None]:
        """Return a function that begins the trace of a segment, which may wait for others."""
        return lambda name, waits: self.trace(
            name, Begun(time.monotonic(), traceparent, waits), model
        )

    def opened(self) -> None:
        """Log that the socket was accepted."""
        self._log(logging.INFO, "session.open", client=self.client)

    def packet(self, late_seconds: float, trace: TurnTrace | None = None) -> None:
        """Count a packet for the socket, this late for its playback deadline (0: in time)."""
        self._metrics.packets.inc()
        if late_seconds > 0:
            self._metrics.packets_late.inc()
            self._metrics.underrun_seconds.observe(late_seconds, _exemplar(trace))

    def message(
        self,
        message: ServerMessage,
        before: TurnStats | None = None,
        trace: TurnTrace | None = None,
    ) -> None:
        """Report a message that goes to the client. `before`: the part of a turn's counts from
        other sockets, where it was counted. `trace`: the trace of the message's turn."""
        if isinstance(message, TurnDone):
            self._turn_done(message, before or TurnStats(), trace)
        elif isinstance(message, ErrorMessage):
            self.failed(message, message.turn_id, fatal=message.fatal, trace=trace)
        elif isinstance(message, Ready):
            self._traceparent = message.settings.traceparent

    def failed(
        self,
        failure: TurnFailure | ErrorMessage,
        turn_id: str | None = None,
        *,
        fatal: bool = False,
        trace: TurnTrace | None = None,
    ) -> None:
        """Report that something was refused, or failed."""
        fault = failure.retryable and failure.code not in _CLIENT_FAULTS
        self._failed = turn_id, failure.code, fault
        if failure.code in _REFUSALS:
            self._metrics.refused.labels(failure.code).inc()
        # The message may quote the client, the code never does.
        level = logging.WARNING if fatal else logging.INFO
        self._log(level, "session.error", trace, code=failure.code, turn=turn_id, fatal=fatal)

    def done(
        self,
        turn_id: str,
        reason: str,
        stats: TurnStats,
        text_chars: int,
        before: TurnStats | None = None,
        trace: TurnTrace | None = None,
        failure: TurnFailure | None = None,
    ) -> None:
        """Report a turn that ended without a message of ours, with the failure, or for the reason
        if there is none. `before`: see `message`."""
        if failure is not None:
            self.failed(failure, turn_id, trace=trace)
            reason = "error"
        done = TurnDone(turn_id=turn_id, reason=reason, text_chars=text_chars, **stats._asdict())
        self._turn_done(done, before or TurnStats(), trace)

    def bug(self) -> None:
        """Log a bug of ours; must be called while the exception is handled."""
        fields = {"session": self.session_id, **self._ids(None)}
        log.exception("session.bug", extra={"fields": fields})

    def contained(self, fail: Callable[[TurnFailure], None]) -> Contained:
        """Return a block whose errors end one speech, by `fail`, and no other."""

        def caught(error: Exception) -> None:
            self.bug()
            fail(TurnFailure("internal", "a fault of the server", retryable=True))

        return Contained(caught)

    def closed(self, code: int | None, reason: str | None) -> None:
        """Log that the socket is gone."""
        label = str(code) if code in _KNOWN_CODES else "other"
        self._metrics.closed.labels(label).inc()
        self._log(logging.INFO, "session.closed", code=code, reason=reason, turns=self._turns)

    def _turn_done(self, done: TurnDone, before: TurnStats, trace: TurnTrace | None) -> None:
        self._count(done, before, _exemplar(trace))
        self._log(
            logging.INFO,
            "turn.done",
            trace,
            turn=done.turn_id,
            reason=done.reason,
            audio_ms=round(done.samples / SAMPLE_RATE * 1000),
            ttfa_ms=done.ttfa_ms,
            underruns=done.underruns,
            held_ms=done.held_ms,
            held_inside_word=done.held_inside_word,
            moves=done.moves,
            text_chars=done.text_chars,
        )
        if trace is not None:
            trace.end(done, self._failed[1] if self._failed[0] == done.turn_id else "", before)

    def _count(self, done: TurnDone, before: TurnStats, exemplar: dict[str, str] | None) -> None:
        metrics = self._metrics
        self._turns += 1
        metrics.turns.labels(done.reason).inc(1, exemplar)
        underruns = done.underruns - before.underruns
        if underruns:
            metrics.underruns.inc(underruns, exemplar)
            metrics.turns_with_gaps.inc(1, exemplar)
        metrics.held_inside_word.inc(done.held_inside_word - before.held_inside_word)
        metrics.moves.inc(done.moves - before.moves)
        metrics.audio_seconds.inc((done.samples - before.samples) / SAMPLE_RATE)
        metrics.text_chars.inc(done.text_chars)
        if done.ttfa_ms is not None and before.ttfa_ms is None:
            metrics.ttfa.observe(done.ttfa_ms / 1000, exemplar)
        if done.reason == "interrupted":
            metrics.interrupts.inc()
        if (good := self._meets_objective(done, underruns)) is not None:
            metrics.slo_turns.inc(1, exemplar)
            if good:
                metrics.slo_good_turns.inc(1, exemplar)

    def _meets_objective(self, done: TurnDone, underruns: int) -> bool | None:
        """Return whether the first sound came soon and none was late. None if the turn says nothing
        about that: it never sounded, and the server was not at fault."""
        turn_id, _, fault = self._failed
        if done.reason == "error" and turn_id == done.turn_id:
            return False if fault else None
        if done.ttfa_ms is None:
            return None
        return done.ttfa_ms <= SLO_TTFA_SECONDS * 1000 and not underruns

    def _log(self, level: int, name: str, trace: TurnTrace | None = None, **fields: object) -> None:
        event(log, level, name, session=self.session_id, **fields, **self._ids(trace))

    def _ids(self, trace: TurnTrace | None) -> dict[str, str]:
        """Return what ties a log line to a turn's span, or else to that of the session's caller."""
        if trace is not None:
            return trace.ids
        if self._tracer is None or self._traceparent is None:
            return {}
        _, trace_id, span_id, _ = self._traceparent.split("-")
        return {"trace_id": trace_id, "span_id": span_id}


def _exemplar(trace: TurnTrace | None) -> dict[str, str] | None:
    return None if trace is None else trace.exemplar
