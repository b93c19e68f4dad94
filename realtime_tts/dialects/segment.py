"""Segments of a context's speech, and what a context tells to and asks of its surroundings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from realtime_tts.dialects.socket_writer import SocketWriter
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.server.speech import SpeechStream, SpokenSpan

if TYPE_CHECKING:
    from realtime_tts.dialects.context import SpeechContext

Messages = Iterable[str | bytes]


@dataclass(slots=True, eq=False)
class Segment:
    """A piece of a context's text that is spoken as one; `tag` is the dialect's own."""

    number: int
    """0 for the first of its context."""
    tag: Any = None
    flushed: bool = False
    """The client asked for its end; else a pause ended it, or the context's own end."""
    text_chars: int = 0
    seconds: float = 0.0
    """Of sound that was sent for it."""
    reason: str = "complete"
    pieces: list[str] = field(default_factory=list)  # of text, until its stream is open
    ended: bool = False  # no more text comes
    blank: bool = False  # its text has been white space so far
    stream: SpeechStream | None = None


class ContextEvents(Protocol):
    """What a dialect says to its client. Each gives the messages to send, in order."""

    def segment_started(self, context: SpeechContext, segment: Segment) -> Messages:
        """Before the first sound of a segment."""

    def sound(self, context: SpeechContext, segment: Segment, data: bytes) -> Messages:
        """`data`: bytes in the context's format, never empty."""

    def spoken(self, context: SpeechContext, segment: Segment, span: SpokenSpan) -> Messages:
        """After sound: the text that it brought, in seconds from the context's first sound."""

    def segment_done(self, context: SpeechContext, segment: Segment) -> Messages:
        """All its sound was sent. Comes for a flush without text, too, in its place."""

    def done(self, context: SpeechContext) -> Messages:
        """The context was ended, and everything of it was sent."""

    def failed(self, context: SpeechContext, failure: TurnFailure) -> Messages:
        """The context is over; nothing of it follows."""


class ContextHost(Protocol):
    """What a context needs of its socket."""

    writer: SocketWriter

    def open_stream(self, context: SpeechContext, free_at: float | None) -> SpeechStream:
        """For the next segment. `free_at`: when the listener will have heard those before.

        Raises RequestError.
        """

    def context_over(self, context: SpeechContext) -> None:
        """It has ended by itself."""

    def segment_over(self) -> None:
        """All that a segment said was sent."""

    def lost(self, reason: str) -> None:
        """The socket must be dropped."""

    def bug(self) -> None:
        """An exception that nobody expected is being handled."""
