"""SessionReporter: what one session leaves in the log and in the metrics.

It sees the messages that go to the client, so the log, `/metrics` and the client cannot disagree.
Lengths are logged, text never is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

from realtime_tts.logs import event
from realtime_tts.metrics import Metrics
from realtime_tts.protocol.effects import TurnFailure, TurnStats
from realtime_tts.protocol.messages import (
    SAMPLE_RATE,
    CloseCode,
    ErrorMessage,
    ServerMessage,
    TurnDone,
)

log = logging.getLogger(__name__)

_REFUSALS = frozenset(
    {"overloaded", "engine_unavailable", "queue_full", "going_away", "rate_limited"}
)
_KNOWN_CODES = frozenset(int(code) for code in CloseCode) | {1005, 1006, 1012}


class SessionReporter:
    """One session's log lines and counts."""

    def __init__(self, session_id: str, client: str, metrics: Metrics) -> None:
        self.session_id = session_id
        self._metrics = metrics
        self._client = client
        self._turns = 0

    def opened(self) -> None:
        """The socket was accepted."""
        self._log(logging.INFO, "session.open", client=self._client)

    def packet(self, late_seconds: float) -> None:
        """A packet was handed to the socket, so late for its playback deadline (0: in time)."""
        self._metrics.packets.inc()
        if late_seconds > 0:
            self._metrics.packets_late.inc()
            self._metrics.underrun_seconds.observe(late_seconds)

    def message(self, message: ServerMessage, before: TurnStats | None = None) -> None:
        """A message is on its way to the client. `before`: what of a turn's counts came of it on
        other sockets, where they were counted."""
        if isinstance(message, TurnDone):
            self._turn_done(message, before or TurnStats())
        elif isinstance(message, ErrorMessage):
            self.failed(message, message.turn_id, fatal=message.fatal)

    def failed(
        self,
        failure: TurnFailure | ErrorMessage,
        turn_id: str | None = None,
        *,
        fatal: bool = False,
    ) -> None:
        """Something was refused, or went wrong."""
        if failure.code in _REFUSALS:
            self._metrics.refused.labels(failure.code).inc()
        # The message may quote the client, the code never does.
        level = logging.WARNING if fatal else logging.INFO
        self._log(level, "session.error", code=failure.code, turn=turn_id, fatal=fatal)

    def ended(
        self,
        turn_id: str,
        reason: str,
        failure: TurnFailure | None,
        stats: TurnStats,
        text_chars: int,
    ) -> None:
        """The same, for the given reason if nothing failed."""
        if failure is not None:
            self.failed(failure, turn_id)
        self.done(turn_id, reason if failure is None else "error", stats, text_chars)

    def done(
        self,
        turn_id: str,
        reason: str,
        stats: TurnStats,
        text_chars: int,
        before: TurnStats | None = None,
    ) -> None:
        """A turn is over of which no message of the native protocol tells; `before` as there."""
        done = TurnDone(turn_id=turn_id, reason=reason, text_chars=text_chars, **asdict(stats))
        self._turn_done(done, before or TurnStats())

    def bug(self) -> None:
        """Something of ours failed; call it while the exception is being handled."""
        log.exception("session.bug", extra={"fields": {"session": self.session_id}})

    @contextmanager
    def contained(self, fail: Callable[[TurnFailure], None]) -> Iterator[None]:
        """One speech's fault ends that one, by `fail`, and keeps nothing from the others."""
        try:
            yield
        except Exception:
            self.bug()
            fail(TurnFailure("internal", "a fault of the server", retryable=True))

    def closed(self, code: int | None, reason: str | None) -> None:
        """The socket is gone."""
        label = str(code) if code in _KNOWN_CODES else "other"
        self._metrics.closed.labels(label).inc()
        self._log(logging.INFO, "session.closed", code=code, reason=reason, turns=self._turns)

    def _turn_done(self, done: TurnDone, before: TurnStats) -> None:
        metrics = self._metrics
        self._turns += 1
        metrics.turns.labels(done.reason).inc()
        underruns = done.underruns - before.underruns
        metrics.underruns.inc(underruns)
        metrics.turns_with_gaps.inc(underruns > 0)
        metrics.held_inside_word.inc(done.held_inside_word - before.held_inside_word)
        metrics.moves.inc(done.moves - before.moves)
        metrics.audio_seconds.inc((done.samples - before.samples) / SAMPLE_RATE)
        metrics.text_chars.inc(done.text_chars)
        if done.ttfa_ms is not None and before.ttfa_ms is None:
            metrics.ttfa.observe(done.ttfa_ms / 1000)
        if done.reason == "interrupted":
            metrics.interrupts.inc()
        self._log(
            logging.INFO,
            "turn.done",
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

    def _log(self, level: int, name: str, **fields: object) -> None:
        event(log, level, name, session=self.session_id, **fields)
