"""What a Session asks its connection to do, in order. Nothing here does anything.

Every effect names its turn by id. Each `OpenTurn` is answered by exactly one of
`Session.turn_finished`, `turn_failed` or `turn_interrupted`; until then no other turn is opened.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from realtime_tts.errors import RealtimeTTSError
from realtime_tts.protocol.messages import ServerMessage
from realtime_tts.protocol.resuming import Resume
from realtime_tts.protocol.settings import SessionSettings


@dataclass(frozen=True, slots=True)
class Begun:
    """When a turn's first text came, in seconds on the session's clock, and whose span it is a part
    of: for who traces it. `waits`: another one was before it."""

    at: float = 0.0
    traceparent: str | None = None
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Send:
    """Put a message into the outbox, behind everything already in it. `begun`: of its turn, where
    it says that the turn is refused or done."""

    message: ServerMessage
    begun: Begun | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """The turn is on the air: take its text and send its audio.

    Its TTFA counts from its first FeedText. Answer with `turn_started` before the first packet.
    `resume`: it was spoken in part on another socket; all its text comes again.
    """

    turn_id: str
    settings: SessionSettings
    resume: Resume | None = None
    begun: Begun = field(default=Begun(), compare=False)


@dataclass(frozen=True, slots=True)
class FeedText:
    """Text of the turn on the air; never empty. May hold lone surrogates (half a delta)."""

    turn_id: str
    text: str


@dataclass(frozen=True, slots=True)
class FlushText:
    """Speak all there is now to its end; what follows is spoken behind it."""

    turn_id: str


@dataclass(frozen=True, slots=True)
class EndText:
    """No more text for the turn on the air."""

    turn_id: str


@dataclass(frozen=True, slots=True)
class InterruptTurn:
    """Stop the turn on the air at once and drop its unsent packets.

    Answer with `Session.turn_interrupted`, always, also when the session is being closed (then
    nobody reads the report). `played_samples` None: the client did not say; estimate.
    """

    turn_id: str
    played_samples: int | None


@dataclass(frozen=True, slots=True)
class ReportHeard:
    """The client interrupts a turn that is done but which its listener still hears.

    Nothing is to be stopped. Answer with `Session.turn_heard`: the report if the connection still
    knows the turn's text and samples, else None. Keeping the last few turns is enough.
    """

    turn_id: str
    played_samples: int | None


@dataclass(frozen=True, slots=True)
class ReportPlayed:
    """The listener has heard so many samples of this turn, on the air or recently done.

    Ignore it for a turn no longer known. It may go backwards or beyond what was sent.
    """

    turn_id: str
    played_samples: int


@dataclass(frozen=True, slots=True)
class Close:
    """Close the socket after everything in the outbox. The last effect of a session."""

    code: int
    reason: str


Effect = (
    Send
    | OpenTurn
    | FeedText
    | FlushText
    | EndText
    | InterruptTurn
    | ReportHeard
    | ReportPlayed
    | Close
)


@dataclass(frozen=True, slots=True)
class TurnStats:
    """What a turn came to, for `turn.done`. `ttfa_ms` None: no audio was sent."""

    samples: int = 0
    ttfa_ms: float | None = None
    underruns: int = 0
    held_ms: float = 0.0
    held_inside_word: int = 0
    moves: int = 0


@dataclass(frozen=True, slots=True)
class HeardReport:
    """What was heard of a turn, for `turn.interrupted`.

    `text_spoken` + `text_remaining` is the turn's source text.
    """

    samples_sent: int
    played_ms: float
    text_spoken: str
    text_remaining: str


class TurnFailure(RealtimeTTSError):
    """Why a turn failed, or cannot be had: raised, or told as an `error`.

    `retry_after_ms` only where waiting helps.
    """

    code: str  # type: ignore[misc]

    def __init__(
        self, code: str, message: str, retryable: bool = False, retry_after_ms: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retry_after_ms = retry_after_ms
