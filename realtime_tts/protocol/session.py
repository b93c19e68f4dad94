"""Session: one client's conversation with the server, without I/O.

What the client sends and what the connection reports goes in; a list of effects comes out. The
connection carries them out in order and decides nothing itself. Time is an argument, in seconds on
one monotonic clock. What happens to turns is in turns.py; here is what concerns the whole session.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from enum import Enum, auto

from realtime_tts.audio.formats import DIGITAL_SOURCE_TYPE
from realtime_tts.errors import RealtimeTTSError
from realtime_tts.protocol import messages as m
from realtime_tts.protocol.effects import Close, Effect, HeardReport, Send, TurnFailure, TurnStats
from realtime_tts.protocol.intake import Intake
from realtime_tts.protocol.parsing import ProtocolError, TooLarge, decode_client_message
from realtime_tts.protocol.query import parse_query
from realtime_tts.protocol.settings import Limits, SessionSettings
from realtime_tts.protocol.turns import Turns, failed, interrupted, refused, warning

_WARNINGS_REMEMBERED = 64  # a field sent with each delta causes one warning


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What `ready` says about the server."""

    session_id: str
    server: str
    model: str
    voices: tuple[str, ...]
    languages: tuple[str, ...]
    models: tuple[str, ...] = ()
    marking: str = "off"


class Phase(Enum):
    OPEN = auto()
    DRAINING = auto()  # the server is going: turns begun go on, new ones are refused
    FINISHING = auto()  # after session.close: as DRAINING, and all text is ended
    ENDING = auto()  # after a fatal error: nothing is accepted, the turn on the air is stopped
    CLOSED = auto()


class Session:
    """The state of one session: one turn is on the air, later ones wait with their text, and each
    gets one `turn.done`.

    `defaults`: the settings of a session that sets nothing. `check` raises a RealtimeTTSError for
    settings that this server cannot do. `bad`: see `Intake`. Call `begin` first. Nothing that a
    client sends makes a session raise.
    """

    def __init__(
        self,
        info: ServerInfo,
        defaults: SessionSettings | None = None,
        limits: Limits | None = None,
        check: Callable[[SessionSettings], None] | None = None,
        bad: deque[float] | None = None,
    ) -> None:
        self.info = info
        self.limits = limits or Limits()
        self.phase = Phase.OPEN
        self._check = check
        self._defaults = defaults or SessionSettings()
        self._turns = Turns(self.limits, self._defaults)
        self._intake = Intake(self.limits, bad)
        self._warned: set[str] = set()
        self._close = Close(m.CloseCode.DONE, "done")

    @property
    def settings(self) -> SessionSettings:
        """The settings of the next turn to begin."""
        return self._turns.settings

    @property
    def on_air(self) -> str | None:
        """The id of the turn that was opened and is not done."""
        return self._turns.on_air.id if self._turns.on_air else None

    @property
    def queued(self) -> tuple[str, ...]:
        """The ids of the turns that wait, oldest first."""
        return tuple(turn.id for turn in self._turns.queue)

    # From the client ------------------------------------------------------------------------

    def begin(self, query: str = "") -> list[Effect]:
        """Begin: send `ready`, or close. `query`: that of the socket's URL, without `?`."""
        try:
            asked = parse_query(query)
            self._apply(asked.start)
        except RealtimeTTSError as error:
            return self.fail("bad_settings", str(error), m.CloseCode.POLICY)
        return [Send(self._ready()), *self._warn_ignored(asked.ignored)]

    def receive(self, raw: str | bytes, now: float) -> list[Effect]:
        """Handle a WebSocket message: str for a text frame, bytes for a binary one."""
        if not self._listening:
            return []
        if not self._intake.admits(now):
            why = f"more than {self.limits.messages_per_second} messages per second; join deltas"
            return self.fail("rate_limited", why, m.CloseCode.POLICY)
        try:
            decoded = decode_client_message(raw, self.limits.max_message_bytes)
        except ProtocolError as error:
            return self._bad_message(error, now)
        warnings = self._warn_ignored(decoded.ignored)
        return [*warnings, *self._handled(decoded.message, now), *self._settle()]

    # From the connection --------------------------------------------------------------------

    def turn_started(self, turn_id: str, layout: str) -> list[Effect]:
        """The connection is about to send the first packet. An interrupted turn has no effects."""
        return self._unless_closed(self._turns.started(turn_id, layout))

    def turn_finished(self, turn_id: str, reason: str, stats: TurnStats) -> list[Effect]:
        """The last packet was handed to the socket: open the next turn. Idempotent."""
        return self._unless_closed(self._turns.left_air(turn_id, reason, stats))

    def turn_failed(self, turn_id: str, failure: TurnFailure, stats: TurnStats) -> list[Effect]:
        """The turn ended with an error: report it, and open the next turn. Idempotent."""
        error = failed(turn_id, failure)
        return self._unless_closed(self._turns.left_air(turn_id, "error", stats, error))

    def turn_interrupted(self, turn_id: str, report: HeardReport, stats: TurnStats) -> list[Effect]:
        """The answer to InterruptTurn, when the turn's packets have left the outbox: send
        `turn.interrupted` and `turn.done`, and open the next turn. Idempotent."""
        if self.phase is Phase.ENDING:
            return self._unless_closed(self._turns.left_air(turn_id, "closed", stats))
        told = interrupted(turn_id, report)
        return self._unless_closed(self._turns.left_air(turn_id, "interrupted", stats, told))

    def turn_heard(self, turn_id: str, report: HeardReport | None) -> list[Effect]:
        """The answer to ReportHeard. `report` None: the turn's text is no longer known."""
        if report is None:
            return self.warn("turn_already_done", f"turn {turn_id} is done", turn_id)
        return self._unless_closed([Send(interrupted(turn_id, report))])

    def warn(self, code: str, message: str, turn_id: str | None = None) -> list[Effect]:
        """Send the client a warning, which refuses nothing."""
        return self._unless_closed([warning(code, message, turn_id)])

    # Time and endings -----------------------------------------------------------------------

    def next_deadline(self) -> float | None:
        """Return when to call `poll` next; None while nothing waits for time."""
        return self._turns.next_deadline() if self._listening else None

    def poll(self, now: float) -> list[Effect]:
        """End the text of turns that had none for too long."""
        return [*self._turns.poll(now), *self._settle()] if self._listening else []

    def drain(self) -> list[Effect]:
        """Finish the turns begun, refuse new ones, then close with 1001 (server shutdown)."""
        if self.phase is not Phase.OPEN:
            return []
        why = "the server is going away: turns begun are finished, new ones refused"
        self.phase = Phase.DRAINING
        self._turns.closed_to_new = TurnFailure("going_away", why, retryable=True)
        self._close = Close(m.CloseCode.GOING_AWAY, "going_away: connect again")
        return self.warn("going_away", why)

    def fail(self, code: str, message: str, close_code: m.CloseCode) -> list[Effect]:
        """End the session now: a fatal error, `turn.done` (closed) for every turn, Close."""
        if not self._listening:
            return []
        of_client = (m.CloseCode.POLICY, m.CloseCode.UNAUTHORIZED)
        retryable = close_code not in of_client
        error = m.ErrorMessage(code=code, message=message, fatal=True, retryable=retryable)
        self.phase = Phase.ENDING
        self._close = Close(close_code, m.close_reason(f"{code}: {message}"))
        over = [*self._turns.drop_queued(), *self._turns.stop_on_air()]
        return [Send(error), *over, *self._settle()]

    def closed(self) -> list[Effect]:
        """The socket is gone: stop the turn on the air, and send nothing any more. Idempotent."""
        self.phase = Phase.CLOSED
        return self._turns.stop_on_air()

    # Steps ----------------------------------------------------------------------------------

    @property
    def _listening(self) -> bool:
        return self.phase not in (Phase.ENDING, Phase.CLOSED)

    def _unless_closed(self, effects: list[Effect]) -> list[Effect]:
        return [] if self.phase is Phase.CLOSED else [*effects, *self._settle()]

    def _settle(self) -> list[Effect]:
        """Open the next turn; if nothing is left to speak, close if the session waits for that."""
        effects = self._turns.settle()
        if self.phase in (Phase.OPEN, Phase.CLOSED) or self._turns.on_air is not None:
            return effects
        self.phase = Phase.CLOSED
        return [*effects, self._close]

    def _handled(self, message: m.ClientMessage, now: float) -> list[Effect]:
        match message:
            case m.SessionStart():
                return self._on_session_start(message)
            case m.Text():
                return self._turns.text(message, now)
            case m.Flush():
                return self._turns.flush(message, now)
            case m.TurnEnd():
                return self._turns.end(message)
            case m.TurnCodes():
                return self._turns.codes(message)
            case m.TurnResume():
                return self._turns.resume(message, now)
            case m.Interrupt():
                return self._turns.interrupt(message)
            case m.Played():
                return self._turns.played(message)
        assert isinstance(message, m.SessionClose)
        return self._on_session_close()

    def _on_session_start(self, message: m.SessionStart) -> list[Effect]:
        try:
            self._apply(message)
        except RealtimeTTSError as error:
            return [refused("bad_settings", str(error))]
        return [Send(self._ready())]

    def _on_session_close(self) -> list[Effect]:
        self.phase = Phase.FINISHING
        self._close = Close(m.CloseCode.DONE, "done")
        why = "this session is closing: open another one"
        self._turns.closed_to_new = TurnFailure("session_closing", why)
        return self._turns.end_all_input()

    def _apply(self, start: m.SessionStart) -> None:
        settings = start.applied_to(self.settings, self._defaults)
        self.limits.check(settings)
        if self._check is not None:
            self._check(settings)
        self._turns.settings = settings

    def _ready(self) -> m.Ready:
        audio = self.settings.audio
        return m.Ready(
            protocol=m.SUBPROTOCOL,
            settings=self.settings,
            sample_rate=audio.sample_rate,
            encoding=audio.encoding,
            packet_bytes=audio.packet_bytes,
            limits=self.limits,
            digital_source_type=DIGITAL_SOURCE_TYPE,
            **asdict(self.info),
        )

    def _bad_message(self, error: ProtocolError, now: float) -> list[Effect]:
        if isinstance(error, TooLarge) and error.text is not None:
            refusal = TurnFailure(error.code, str(error))
            effects = [*self._turns.text(error.text, now, refusal), *self._settle()]
        else:
            effects = [refused(error.code, str(error))]
        if not self._intake.tolerates_bad(now):
            window = self.limits.bad_message_window_ms
            why = f"{self.limits.max_bad_messages} bad messages within {window} ms"
            effects += self.fail("too_many_bad_messages", why, m.CloseCode.POLICY)
        return effects

    def _warn_ignored(self, sentences: Iterable[str]) -> list[Effect]:
        effects: list[Effect] = []
        for sentence in sentences:
            if sentence not in self._warned and len(self._warned) < _WARNINGS_REMEMBERED:
                self._warned.add(sentence)
                effects += self.warn("unknown_field", sentence)
        return effects
