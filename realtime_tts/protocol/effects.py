"""What a Session asks its connection to do, in order. Effects only describe; they do nothing.

Every effect names its turn by id. Each `OpenTurn` is answered by exactly one of
`Session.turn_finished`, `turn_failed` or `turn_interrupted`; until then no other turn is opened.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from realtime_tts.errors import RealtimeTTSError
from realtime_tts.protocol.messages import ServerMessage
from realtime_tts.protocol.resuming import Resume
from realtime_tts.protocol.settings import SessionSettings


@dataclass(frozen=True, slots=True)
class Begun:
    """How a turn began, for its trace: `at` is when its first text came, in seconds on the
    session's clock, `traceparent` the caller's span, and `waits` whether another turn came
    first."""

    at: float = 0.0
    traceparent: str | None = None
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Send:
    """Put a message into the outbox, behind everything already in it. `begun`: how the turn of the
    message began, if the message says that the turn is refused or done."""

    message: ServerMessage
    begun: Begun | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """Put the turn on the air: take its text and send its audio.

    Its TTFA counts from its first FeedText. Answer with `turn_started` before the first packet.
    `resume`: what was spoken of it on another socket; all its text comes again.
    """

    turn_id: str
    settings: SessionSettings
    resume: Resume | None = None
    begun: Begun = field(default=Begun(), compare=False)


@dataclass(frozen=True, slots=True)
class FeedText:
    """Add text to the turn on the air: never empty, maybe with lone surrogates (half a delta)."""

    turn_id: str
    text: str


@dataclass(frozen=True, slots=True)
class FlushText:
    """Speak all text so far to its end; text that follows is spoken after it."""

    turn_id: str


@dataclass(frozen=True, slots=True)
class EndText:
    """End the text of the turn on the air."""

    turn_id: str


@dataclass(frozen=True, slots=True)
class InterruptTurn:
    """Stop the turn on the air at once and drop its unsent packets.

    Always answer with `Session.turn_interrupted`, even when the session is being closed and nobody
    reads the report. `played_samples` None: the client did not say; estimate.
    """

    turn_id: str
    played_samples: int | None


@dataclass(frozen=True, slots=True)
class ReportHeard:
    """Report what was heard of a turn that is done but that its listener still hears.

    There is nothing to stop. Answer with `Session.turn_heard`: the report if the connection still
    knows the turn's text and samples, else None. Keeping the last few turns is enough.
    """

    turn_id: str
    played_samples: int | None


@dataclass(frozen=True, slots=True)
class ReportPlayed:
    """Note that the listener has heard this many samples of a turn, on the air or recently done.

    Ignore it for a turn that is no longer known. The position may go back or beyond what was sent.
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


class TurnStats(NamedTuple):
    """The numbers of a turn, for `turn.done`. `ttfa_ms` None: no audio was sent."""

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
    """Why a turn failed, or cannot begin: raised, or sent as an `error`.

    `retry_after_ms` is set only where waiting helps.
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
