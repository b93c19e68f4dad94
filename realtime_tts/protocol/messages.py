"""The messages of the native protocol, as PROTOCOL.md describes them, in its order.

Client messages first, then server messages, then close codes. Text frames carry one message each;
binary frames carry audio and nothing else. Reading and writing them is in parsing.py.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from realtime_tts.audio.formats import ENGINE_RATE, AudioFormat
from realtime_tts.protocol.changes import changed, changes_of
from realtime_tts.protocol.settings import Limits, SessionSettings, Traceparent

DEFAULT_SERVER = "ws://127.0.0.1:8000"
"""Where a server is that was told nothing else."""

SUBPROTOCOL = "realtime-tts.v1"
KEY_SUBPROTOCOL_PREFIX = "realtime-tts.key."
"""A browser cannot set headers: it offers `realtime-tts.key.<API key>` beside SUBPROTOCOL."""

SAMPLE_RATE = ENGINE_RATE
"""Positions in a turn's audio count samples of this rate, whatever its format."""

TurnId = Annotated[
    str,
    Meta(
        pattern=r"\A[!-~]{1,64}\Z", description="1 to 64 printable ASCII characters without space"
    ),
]
Milliseconds = Annotated[
    float, Meta(ge=0, le=1e12, description="a number of milliseconds, 0 or more")
]
SampleCount = Annotated[
    int, Meta(ge=0, le=2**53, description="a whole number of samples, 0 or more")
]
CharacterCount = Annotated[
    int, Meta(ge=0, le=2**53, description="a whole number of characters, 0 or more")
]
_BASE64 = r"\A(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\Z"
Base64 = Annotated[str, Meta(pattern=_BASE64, description="a string of base64")]
StateText = Annotated[
    str,
    Meta(
        pattern=_BASE64,
        max_length=4096,
        description="a string of at most 4,096 characters of base64, as `turn.state` brought it",
    ),
]

TurnReason = Literal[
    "complete",
    "interrupted",
    "error",
    "idle",
    "closed",
    "guard_budget",
    "guard_silence",
    "guard_repetition",
    "guard_text",
    "max_length",
]


class CloseCode(IntEnum):
    """The close codes that a server uses; the close reason begins with the error's code."""

    DONE = 1000
    GOING_AWAY = 1001
    INVALID_UTF8 = 1007
    POLICY = 1008
    TOO_BIG = 1009
    INTERNAL = 1011
    TRY_AGAIN = 1013
    UNAUTHORIZED = 4401


def close_reason(text: str) -> str:
    """Return as much of the text as a close frame can carry: 123 bytes."""
    return text.encode(errors="replace")[:123].decode(errors="ignore")


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """Base of all messages. A field left at its default is left out when encoded."""


# Client -> server ---------------------------------------------------------------------------


_SettingsChanges: Any = changes_of(SessionSettings, Message)


class SessionStart(
    _SettingsChanges,  # type: ignore[misc]  # made above, where the type checker cannot see it
    Message,
    frozen=True,
    kw_only=True,
    tag="session.start",
):
    """Change settings for later turns: an absent field stays, null resets it. Answered by Ready.

    Its fields are those of SessionSettings, as `changes_of` makes them.
    """

    def applied_to(self, settings: SessionSettings, defaults: SessionSettings) -> SessionSettings:
        """Return `settings` with these changes. Raises RequestError for an unknown audio format."""
        return changed(settings, self, defaults)


class Text(Message, frozen=True, kw_only=True, tag="text"):
    """A text delta. A `turn_id` not seen before begins a turn; `end` ends its text."""

    text: str
    turn_id: TurnId | None = None
    end: bool = False
    traceparent: Traceparent | None = None
    """Replaces the session's `traceparent`, in the text that begins a turn."""


class Flush(Message, frozen=True, kw_only=True, tag="flush"):
    """Speak all text so far to its end, and stay in the turn."""

    turn_id: TurnId | None = None


class TurnEnd(Message, frozen=True, kw_only=True, tag="turn.end"):
    """End the text of this turn."""

    turn_id: TurnId | None = None


class TurnCodes(Message, frozen=True, kw_only=True, tag="turn.codes"):
    """Codes of a turn that is about to be resumed, as TurnState carried them."""

    turn_id: TurnId
    codes: tuple[Base64, ...]


class TurnResume(Message, frozen=True, kw_only=True, tag="turn.resume"):
    """Continue a turn whose socket was lost. Its text follows, from the beginning.

    `samples` and `text_chars` are those of the last TurnState whose packet came. Without its
    `state`, or the last `part`, speech continues at the next word.
    """

    turn_id: TurnId
    samples: SampleCount
    text_chars: CharacterCount
    words_chars: CharacterCount = 0
    """Characters in all TurnWords that came."""
    part: StateText | None = None
    state: StateText | None = None
    traceparent: Traceparent | None = None
    """The `traceparent` of the text that began the turn."""


class Interrupt(Message, frozen=True, kw_only=True, tag="interrupt"):
    """Stop a turn, or without `turn_id` every turn. The position is how much the listener heard."""

    turn_id: TurnId | None = None
    played_ms: Milliseconds | None = None
    played_samples: SampleCount | None = None


class Played(Message, frozen=True, kw_only=True, tag="played"):
    """How much of a turn the listener has heard. One of the two positions is required."""

    turn_id: TurnId | None = None
    played_ms: Milliseconds | None = None
    played_samples: SampleCount | None = None


class SessionClose(Message, frozen=True, kw_only=True, tag="session.close"):
    """Speak what was sent, then close with 1000."""


ClientMessage = (
    SessionStart
    | Text
    | Flush
    | TurnEnd
    | TurnCodes
    | TurnResume
    | Interrupt
    | Played
    | SessionClose
)


# Server -> client ---------------------------------------------------------------------------


class Ready(Message, frozen=True, kw_only=True, tag="ready"):
    """The session as it is now. Sent at connect, and after each `session.start`."""

    session_id: str
    protocol: str
    server: str
    model: str
    voices: tuple[str, ...]
    languages: tuple[str, ...]
    settings: SessionSettings
    sample_rate: int
    encoding: str
    packet_bytes: int | None
    """The largest packet; None where packets have the size that the encoder gives them."""
    limits: Limits
    models: tuple[str, ...] = ()
    """All loaded checkpoints, if there are several."""
    digital_source_type: str = ""
    """What kind of source all audio has, in IPTC's words; empty from an older server."""
    marking: str = ""
    """What marks the audio itself as synthetic, or `off`; empty from an older server."""


class TurnStarted(Message, frozen=True, kw_only=True, tag="turn.started"):
    """Audio of this turn follows. `layout`: the layout in use, streaming or full_text."""

    turn_id: str
    layout: str
    audio: AudioFormat | None = None
    """The format of the turn's audio; left out if it is the default."""


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """A word of the turn's text as it was sent, with the white space before it, and the positions
    of the turn's audio between which it is spoken."""

    text: str
    start_ms: float
    end_ms: float


class TurnWords(Message, frozen=True, kw_only=True, tag="turn.words"):
    """Words that became spoken with the audio sent since the last TurnWords; at least one.

    All words of a turn joined are its text, as far as it was spoken. `exact`: the times come from
    the model; otherwise they are an estimate.
    """

    turn_id: str
    words: tuple[Word, ...]
    exact: bool = False


class TurnState(Message, frozen=True, kw_only=True, tag="turn.state"):
    """What another session needs to continue the turn after the next packet, once that has come.

    `samples` of the turn, that packet included. `text_chars`: characters spoken before it, by
    estimate. `state` and `part` replace the ones before; a `part` makes earlier codes needless.
    """

    turn_id: str
    samples: int
    text_chars: int
    state: str
    codes: str = ""
    part: str = ""


class TurnInterrupted(Message, frozen=True, kw_only=True, tag="turn.interrupted"):
    """The answer to `interrupt`: what was heard. No audio of this turn follows.

    `text_spoken` + `text_remaining` is the turn's text as the client sent it. The position of the
    cut is an estimate from the audio played; without a position from the client, `played_ms` is one
    too.
    """

    turn_id: str
    samples_sent: int
    played_ms: float
    text_spoken: str
    text_remaining: str


class TurnDone(Message, frozen=True, kw_only=True, tag="turn.done"):
    """The end of a turn: exactly one for every turn, whatever happens. No audio of it follows.

    `samples` at 24 kHz were sent. `ttfa_ms` counts from the first text at the server to the first
    packet, None if there was none. `underruns`: packets sent too late for gapless playback.
    `held_ms`: time the speech waited for text; `held_inside_word`: how often the listener may have
    heard it wait in the middle of a word. `moves`: how often another engine continued it.
    """

    turn_id: str
    reason: str
    """One of TurnReason; a newer server may have more."""
    samples: int
    ttfa_ms: float | None
    underruns: int
    held_ms: float
    text_chars: int
    held_inside_word: int = 0
    moves: int = 0

    @property
    def seconds(self) -> float:
        """Seconds of speech that were sent."""
        return self.samples / SAMPLE_RATE


class WarningMessage(Message, frozen=True, kw_only=True, tag="warning"):
    """Something the client should know; nothing was refused."""

    code: str
    message: str
    turn_id: str | None = None


class ErrorMessage(Message, frozen=True, kw_only=True, tag="error"):
    """Something was refused or failed. After a fatal one the server closes the socket."""

    code: str
    message: str
    fatal: bool
    retryable: bool
    retry_after_ms: int | None = None
    turn_id: str | None = None


ServerMessage = (
    Ready
    | TurnStarted
    | TurnWords
    | TurnState
    | TurnInterrupted
    | TurnDone
    | WarningMessage
    | ErrorMessage
)


def _by_tag(union: Any) -> dict[str, Any]:
    return {kind.__struct_config__.tag: kind for kind in get_args(union)}


CLIENT_MESSAGES: dict[str, type[ClientMessage]] = _by_tag(ClientMessage)
SERVER_MESSAGES: dict[str, type[ServerMessage]] = _by_tag(ServerMessage)
