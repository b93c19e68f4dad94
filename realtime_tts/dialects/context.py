"""SpeechContext: one voice of several that speak over one socket, from its first text to its end.

Its text is cut into segments, by flushes and by pauses. What its `Speech` gives the dialect puts
into messages, and the socket's writer asks for them one at a time: so contexts take turns, and a
client that does not read stops them all.
"""

from __future__ import annotations

import abc
import time
from collections.abc import Iterator
from typing import Any

from realtime_tts.dialects.json_socket import JsonSocket
from realtime_tts.dialects.timing import spans_of
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.server.alarm import Alarm
from realtime_tts.server.refusals import SLOW_READER, going_away
from realtime_tts.server.speech import Speech
from realtime_tts.server.track import Segment, Sound
from realtime_tts.server.writer import Frame, Messages, WriterFull
from realtime_tts.text.speech_times import SpokenSpan

_MAX_SEGMENTS = 256  # that wait: a flood of flushes must not fill the memory
LULL_SECONDS = 3.0
"""A context that was begun is waited for so long in a drain: more of its turn may come."""


class ContextSocket(JsonSocket):
    """A socket as its contexts see it. What a dialect fills in says what is told to the client: the
    messages to send, in order."""

    def segment_started(self, context: SpeechContext, segment: Segment) -> Messages:
        """Before the first sound of a segment."""
        return ()

    @abc.abstractmethod
    def sound(self, context: SpeechContext, segment: Segment, data: bytes) -> Messages:
        """`data`: bytes in the context's format, never empty."""

    def spoken(self, context: SpeechContext, segment: Segment, span: SpokenSpan) -> Messages:
        """After sound: the text that it brought, in seconds from the context's first sound."""
        return ()

    def segment_done(self, context: SpeechContext, segment: Segment) -> Messages:
        """All its sound was sent. Comes for a flush without text, too, in its place."""
        return ()

    def done(self, context: SpeechContext) -> Messages:
        """The context was ended, and everything of it was sent."""
        return ()

    @abc.abstractmethod
    def failed(self, context: SpeechContext, failure: TurnFailure) -> Messages:
        """The context is over; nothing of it follows."""

    # What a context calls, which a dialect leaves alone.

    @abc.abstractmethod
    def cancel(self, context_id: str) -> bool:
        """Silence a context at once; nothing of it is sent after this. False: there was none."""

    @abc.abstractmethod
    def context_over(self, context: SpeechContext) -> None:
        """It has ended by itself."""

    @abc.abstractmethod
    def segment_over(self) -> None:
        """All that a segment said was sent."""


class SpeechContext:
    """Made by `SpeechSocket.open_context`. All methods are plain calls on the event loop.

    `idle_seconds`: after so long without text or speech the context ends; None for one that lasts
    as long as its socket. `max_chars`: text that may wait to be spoken. `after`: it is silent until
    that context is over. `tag` is the dialect's own.
    """

    def __init__(
        self,
        socket: ContextSocket,
        context_id: str,
        speech: Speech,
        *,
        idle_seconds: float | None,
        max_chars: int,
        after: SpeechContext | None = None,
        tag: Any = None,
    ) -> None:
        self.id = context_id
        self.speech = speech
        self.tag = tag
        self._socket = socket
        self._idle_seconds = idle_seconds
        self._max_chars = max_chars
        self._after = after
        self._draining = False
        self._over = False
        self._blank = False  # white space came that began no segment
        self._last = ""  # the end of the text since the last flush
        self._active_at = time.monotonic()
        self._alarm = Alarm(self._on_time)
        self._frames = self._run()
        speech.on_change = self._changed
        self._on_time()

    # Text.

    @property
    def ended(self) -> bool:
        """No more text comes."""
        return self._over or self.speech.ended

    @property
    def speaking(self) -> bool:
        """Whether there is text, or a flush, that has not been answered in full."""
        return bool(self.speech.segments)

    @property
    def busy(self) -> bool:
        """Whether it must be waited for before the socket may go: not while it waits for its first
        text, and a lasting one not between its texts either."""
        begun = self.speech.count > 0 and self._idle_seconds is not None
        return self.speaking or self.ended or begun

    @property
    def waits(self) -> bool:
        """Whether it is silent until another is over."""
        return self._after is not None

    def feed(self, text: str, *, whole: bool = False) -> Segment | None:
        """Add text; not after `end`. Gives its segment; None for white space that begins nothing.

        `whole`: it is a sentence or more, and comes without the space behind the one before. Raises
        RequestError if too much waits, TurnFailure for a first text in a drain and as `Speech.feed`
        does: a context whose first text is refused is over, unless it lasts.
        """
        speech, before = self.speech, self._last
        if whole and before and text and not (before.isspace() or text[0].isspace()):
            text = " " + text
        if speech.open is None:
            if not text.strip():
                self._blank, self._last = self._blank or bool(text), text[-1:] or before
                return None
            if self._draining and not speech.count:
                raise going_away()
        waiting = sum(segment.text_chars for segment in speech.segments)
        if waiting + len(text) > self._max_chars:
            raise RequestError(
                f"at most {self._max_chars} characters may wait to be spoken, and "
                f"{waiting} do; send the next {len(text)} later"
            )
        self._check_segments()
        try:
            segment = speech.feed(text)
        except TurnFailure:
            if not speech.count and self._idle_seconds is not None:
                self._socket.cancel(self.id)  # it has not begun, and nobody will end it
            raise
        self._was_active()
        self._blank, self._last = False, text[-1:] or before
        return segment

    def commit(self) -> None:
        """Speak all text so far to its end; what follows goes on in the same segment."""
        self._was_active()
        self.speech.commit()

    def cut(self) -> Segment:
        """Speak all text so far to its end; text that follows begins a new segment.

        Raises RequestError if too many wait.
        """
        self._check_segments()
        segment = self.speech.cut(wants_sound=self._blank)
        segment.flushed = True
        self._blank, self._last = False, ""
        return segment

    def end(self) -> None:
        """No more text. Idempotent."""
        if self._blank and not self.ended and not self.speech.count:
            self.speech.cut(wants_sound=True)  # all its text is white space
        self.speech.end()

    def touch(self) -> None:
        """The client wants it to go on: its idle time begins anew; not in a drain."""
        if not self._draining:
            self._was_active()
            self.speech.touch()

    def _check_segments(self) -> None:
        if self.speech.open is None and len(self.speech.segments) >= _MAX_SEGMENTS:
            raise RequestError(
                f"{_MAX_SEGMENTS} flushes wait to be spoken; send the next one later"
            )

    # Time.

    def drain(self) -> None:
        """The server is going: takes no first text, and waits but `LULL_SECONDS` for more."""
        self._draining = True
        self._alarm.set(self._due())

    def _was_active(self) -> None:
        self._active_at = time.monotonic()
        self._alarm.set(self._due())

    def _due(self) -> float | None:
        seconds = self._idle_seconds
        if seconds is None or self.ended or self.speech.open is not None:
            return None
        return self._active_at + (min(seconds, LULL_SECONDS) if self._draining else seconds)

    def _on_time(self) -> None:
        due = self._due()
        if due is not None and time.monotonic() >= due:
            if not self.speaking:
                self.end()
            else:
                self._active_at = time.monotonic()
        self._alarm.set(self._due())

    # Sound.

    def gone(self, other: SpeechContext) -> None:
        """The other one is over: if this one was to speak after it, it does."""
        if self._after is other:
            self._after = other._after
            if self._after is None:
                self.speech.start()

    def _changed(self) -> None:
        failure = self.speech.failure
        if failure is not None and failure.code == SLOW_READER:
            self._socket.lost(SLOW_READER)
        elif not self._over:
            self._socket.writer.wake(self)

    def next_frame(self) -> Frame | None:
        """For the writer: the next message, if there is one."""
        try:
            return next(self._frames, None)
        except TurnFailure as failure:
            self.fail(failure)
        except RequestError as error:
            self.fail(TurnFailure(error.code, str(error)))
        except WriterFull:
            self._socket.lost(SLOW_READER)
        except Exception:
            self._socket.reporter.bug()
            self.fail(TurnFailure("internal", "a fault of the server", True))
        return None

    def _run(self) -> Iterator[Frame | None]:
        socket, speech = self._socket, self.speech
        while (given := speech.take(fill=True)) is not None or not speech.done:
            if given is None:
                yield None
                continue
            segment = given.segment
            if isinstance(given, Sound):
                if not segment.told:
                    segment.told = True
                    yield from socket.segment_started(self, segment)
                yield from socket.sound(self, segment, given.data)
            for span in spans_of(speech):
                yield from socket.spoken(self, segment, span)
            if not isinstance(given, Sound):
                yield from socket.segment_done(self, segment)
                speech.handed_over()
                self._was_active()
                socket.segment_over()
        if not self._over:
            yield from socket.done(self)
            self.cancel("closed")
            socket.context_over(self)

    # The end.

    def cancel(self, reason: str = "interrupted") -> None:
        """Silence at once: nothing of it is sent any more. Idempotent. Not from what a dialect says
        of a context. `reason` is for the log and the metrics."""
        self._over = True
        self._socket.writer.drop(self)
        self._alarm.stop()
        self.speech.close(reason)

    def fail(self, failure: TurnFailure) -> None:
        """Silence at once, and say why."""
        if self._over:
            return
        self._over = True
        self._socket.writer.drop(self)
        try:
            for message in self._socket.failed(self, failure):
                self._socket.writer.put(message)
        except WriterFull:
            self._socket.lost(SLOW_READER)
        except Exception:
            self._socket.reporter.bug()
        self.cancel("closed")
        self._socket.context_over(self)
