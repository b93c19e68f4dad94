"""SpeechContext: one voice of several that speak over one socket, from its first text to its end.

Its text is cut into segments, by the client's flushes and by pauses. The dialect puts what its
`Speech` gives into messages, and the socket's writer asks for them one at a time: so contexts take
turns, and a client that does not read stops them all.
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

_MAX_SEGMENTS = 256  # waiting: a flood of flushes must not fill the memory
DRAIN_IDLE_SECONDS = 3.0
"""Seconds that a drain keeps a context that has begun: more of its turn may come."""


class ContextSocket(JsonSocket):
    """A socket as its contexts see it. A dialect's methods return messages to send, in order."""

    def segment_started(self, context: SpeechContext, segment: Segment) -> Messages:
        """Called before the first sound of a segment."""
        return ()

    @abc.abstractmethod
    def sound(self, context: SpeechContext, segment: Segment, data: bytes) -> Messages:
        """Called for each piece of sound; `data`: bytes in the context's format, never empty."""

    def spoken(self, context: SpeechContext, segment: Segment, span: SpokenSpan) -> Messages:
        """Called after sound, with its text; times are in seconds of the context's sound."""
        return ()

    def segment_done(self, context: SpeechContext, segment: Segment) -> Messages:
        """Called when all sound of a segment was sent; also, in order, for a flush without text."""
        return ()

    def done(self, context: SpeechContext) -> Messages:
        """Called when the context was ended and everything of it was sent."""
        return ()

    @abc.abstractmethod
    def failed(self, context: SpeechContext, failure: TurnFailure) -> Messages:
        """Called when the context has failed; nothing of it follows."""

    # Called by contexts; a dialect does not override these.

    @abc.abstractmethod
    def context_over(self, context: SpeechContext) -> None:
        """Called when the context has ended by itself."""

    @abc.abstractmethod
    def segment_over(self) -> None:
        """Called when all messages of a segment were sent."""


class SpeechContext:
    """One voice, from `SpeechSocket.open_context`. All methods are plain calls on the event loop.

    `idle_seconds`: after this time without text or speech the context ends; None for one that lasts
    as long as its socket. `max_chars`: characters that may wait to be spoken. `after`: the context
    is silent until that one is over. `tag` belongs to the dialect.
    """

    def __init__(
        self,
        socket: ContextSocket,
        context_id: str,
        speech: Speech,
        *,
        idle_seconds: float | None,
        max_chars: int,
        after: SpeechContext | None,
        tag: Any,
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
        self._blank = False  # whether white space came that began no segment
        self._last = ""  # the end of the text since the last flush
        self._active_at = time.monotonic()
        self._alarm = Alarm(self._on_time)
        self._frames = self._run()
        speech.on_change = self._changed
        self._on_time()

    # Text.

    @property
    def ended(self) -> bool:
        """Whether no more text comes."""
        return self._over or self.speech.ended

    @property
    def speaking(self) -> bool:
        """Whether text or a flush has not been answered in full."""
        return bool(self.speech.segments)

    @property
    def busy(self) -> bool:
        """Whether a drain must wait for this context: not while it waits for its first text, nor,
        if it lasts as long as its socket, between its texts."""
        begun = self.speech.count > 0 and self._idle_seconds is not None
        return self.speaking or self.ended or begun

    @property
    def waits(self) -> bool:
        """Whether this context is silent until another one is over."""
        return self._after is not None

    def feed(self, text: str, *, whole: bool = False) -> Segment | None:
        """Add text; not after `end`. Return its segment, None for white space that begins nothing.

        `whole`: the text is a sentence or more, and comes without the space in front of it. Raises
        RequestError if too much waits, TurnFailure for a first text in a drain and as `Speech.feed`
        does. The dialect must leave out what follows a text that is refused.
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
                f"{waiting} do, so {len(text)} more are too many; send text less far ahead"
            )
        self._check_segments()
        segment = speech.feed(text)
        self._was_active()
        self._blank, self._last = False, text[-1:] or before
        return segment

    def commit(self) -> None:
        """Speak all text so far to its end; text that follows continues the same segment."""
        self._was_active()
        self.speech.commit()

    def cut(self) -> Segment:
        """Speak all text so far to its end; text that follows begins a new segment.

        Raises RequestError if too many segments wait.
        """
        self._check_segments()
        segment = self.speech.cut(wants_sound=self._blank)
        segment.flushed = True
        self._blank, self._last = False, ""
        return segment

    def end(self) -> None:
        """End the text. Idempotent."""
        if self._blank and not self.ended and not self.speech.count:
            self.speech.cut(wants_sound=True)  # all its text is white space
        self.speech.end()

    def touch(self) -> None:
        """Begin the idle time anew, since the client keeps the context; not in a drain."""
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
        """Accept no first text, and wait only `DRAIN_IDLE_SECONDS` for more."""
        self._draining = True
        self._alarm.set(self._due())

    def _was_active(self) -> None:
        self._active_at = time.monotonic()
        self._alarm.set(self._due())

    def _due(self) -> float | None:
        seconds = self._idle_seconds
        if seconds is None or self.ended or self.speech.open is not None:
            return None
        return self._active_at + (min(seconds, DRAIN_IDLE_SECONDS) if self._draining else seconds)

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
        """Note that `other` has ended. If this context waits for it, it now waits for what that one
        was waiting for, or else begins to speak."""
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
        """Return the next message for the writer, if there is one."""
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
        """Silence the context at once: nothing of it is sent any more. Idempotent. Must not be
        called from a dialect's message hooks. `reason` is for the log and the metrics."""
        self._over = True
        self._socket.writer.drop(self)
        self._alarm.release()
        self.speech.close(reason)
        self._frames = iter(())  # a suspended generator would keep this object alive

    def fail(self, failure: TurnFailure) -> None:
        """Silence the context at once, and tell the client why."""
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
