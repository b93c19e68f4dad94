"""SpeechContext: one voice of several that speak over one socket, from its first text to its end.

Its text is cut into segments, by flushes and by pauses. A segment is a `SpeechStream`: the engine
speaks it to its end, which it can only do for text that it knows to be complete. Segments follow
one another, their sound goes through one encoder, and what happens is told to `ContextEvents`.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from realtime_tts.audio.encoders import Encoder
from realtime_tts.dialects.context_sound import ContextSound
from realtime_tts.dialects.segment import ContextEvents, ContextHost, Messages, Segment
from realtime_tts.dialects.socket_writer import WriterFullError
from realtime_tts.errors import RequestError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.server.deadline import Alarm
from realtime_tts.server.front import GOING
from realtime_tts.server.speech import SpeechError
from realtime_tts.server.turn_input import is_long
from realtime_tts.server.websocket import SLOW_READER

_MAX_SEGMENTS = 256  # that wait: a flood of flushes must not fill the memory
LULL_SECONDS = 3.0
"""A context that was begun is waited for so long in a drain: more of its turn may come."""

__all__ = ["ContextEvents", "Messages", "Segment", "SpeechContext"]


class SpeechContext:
    """Made by `SpeechSocket.open_context`. All methods are plain calls on the event loop.

    `hold_seconds`: after so long without more text what is being spoken is spoken to its end.
    `idle_seconds`: after so long without text or speech the context ends; None for one that lasts
    as long as its socket. `max_chars`: text that may wait to be spoken. `after`: it is silent until
    that context is over. `tag` is the dialect's own.
    """

    def __init__(
        self,
        host: ContextHost,
        context_id: str,
        settings: Any,
        make_encoder: Callable[[], Encoder],
        events: ContextEvents,
        *,
        hold_seconds: float,
        idle_seconds: float | None,
        max_chars: int,
        encoder_per_segment: bool = False,
        after: SpeechContext | None = None,
        tag: Any = None,
    ) -> None:
        self.id = context_id
        self.settings = settings
        self.tag = tag
        self.ended = False
        """No more text comes."""
        self._draining = False
        self.hold_seconds = hold_seconds
        """May be changed; counts from the next text on."""
        self._host = host
        self._events = events
        self._sound = ContextSound(self, make_encoder, events, host.writer)
        self._per_segment = encoder_per_segment
        self._idle_seconds = idle_seconds
        self._max_chars = max_chars
        self._segments: deque[Segment] = deque()  # the first is being spoken
        self._input: Segment | None = None  # the last, while it takes text
        self._last = Segment(0)  # the last that sounded
        self._count = 0
        self._chars = 0  # of all segments there
        self._blank = False  # white space came that began no segment
        self._heard_at: float | None = None
        self._after = after
        self._changed = asyncio.Event()
        self._active_at = time.monotonic()
        self._alarm = Alarm(time.monotonic, self._on_time)
        self._on_time()
        self._pump = asyncio.create_task(self._run(), name=f"context-{context_id[:64]}")

    @property
    def seconds(self) -> float:
        """Of sound that was sent."""
        return self._sound.seconds

    # Text.

    @property
    def speaking(self) -> bool:
        """Whether there is text, or a flush, that has not been answered in full."""
        return bool(self._segments)

    @property
    def busy(self) -> bool:
        """Whether it must be waited for before the socket may go: not while it waits for its first
        text, and a lasting one not between its texts either."""
        begun = self._count > 0 and self._idle_seconds is not None
        return self.speaking or self.ended or begun

    @property
    def waits(self) -> bool:
        """Whether it is silent until another is over."""
        return self._after is not None

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Those that have not been answered in full, the one that sounds first."""
        return tuple(self._segments)

    def feed(self, text: str) -> Segment | None:
        """Add text; not after `end`. Gives its segment; None for white space that begins nothing.

        Raises RequestError if too much waits, SpeechError for a first text in a drain.
        """
        assert not self.ended, "text after the end of the context"
        if self._input is None and not text.strip():
            self._blank = self._blank or bool(text)
            return None
        if self._draining and not self._count:
            raise SpeechError(GOING)
        if self._chars + len(text) > self._max_chars:
            raise RequestError(
                f"at most {self._max_chars} characters may wait to be spoken, and "
                f"{self._chars} do; send the next {len(text)} later"
            )
        segment = self._input or self._begin()
        segment.text_chars += len(text)
        self._chars += len(text)
        if segment.stream is None:
            segment.pieces.append(text)
        else:
            segment.stream.feed(text)
        self._was_active()
        return segment

    async def taken_in(self) -> None:
        """Wait until what is being spoken has taken in all its text so far."""
        first = self._segments[0] if self._segments else None
        if first is not None and first.stream is None and is_long(first.text_chars):
            await asyncio.sleep(0)  # our task is about to open the stream
        if self._segments and self._segments[0].stream is not None:
            await self._segments[0].stream.taken_in()

    def touch(self) -> None:
        """The client wants it to go on: its idle time begins anew; not in a drain."""
        if not self._draining:
            self._was_active()

    def drain(self) -> None:
        """The server is going: takes no first text, and waits but `LULL_SECONDS` for more."""
        self._draining = True
        self._alarm.set(self._due())

    def flush(self, tag: Any = None) -> Segment:
        """Speak all text so far to its end; text that follows begins a new segment.

        Raises RequestError if too many wait.
        """
        segment = self._input or self._begin()
        segment.flushed = True
        segment.tag = tag if tag is not None else segment.tag
        self._end_segment()
        return segment

    def end(self) -> None:
        """No more text. Idempotent."""
        if self._blank and not self.ended and not self._count:
            self._begin()  # all its text is white space
        self.ended = True
        self._end_segment()
        self._changed.set()

    def cancel(self, reason: str = "interrupted") -> None:
        """Silence at once: nothing of it is sent any more. Idempotent. Not from `ContextEvents`.

        `reason` is for the log and the metrics.
        """
        self.ended = True
        self._pump.cancel()
        self._host.writer.drop(self)
        self._clean(reason)

    async def gone(self) -> None:
        """Wait until its task has ended; after `cancel`."""
        await asyncio.gather(self._pump, return_exceptions=True)

    def fail(self, failure: TurnFailure) -> None:
        """Silence at once, and say why."""
        if not self._pump.done():
            self._pump.cancel()
            self._fail(failure)

    def _was_active(self) -> None:
        self._active_at = time.monotonic()
        self._alarm.set(self._due())

    def _begin(self) -> Segment:
        if len(self._segments) >= _MAX_SEGMENTS:
            raise RequestError(
                f"{_MAX_SEGMENTS} flushes wait to be spoken; send the next one later"
            )
        self._input, self._blank = Segment(self._count, blank=self._blank), False
        self._count += 1
        self._segments.append(self._input)
        self._changed.set()
        return self._input

    def _end_segment(self) -> None:
        segment, self._input = self._input, None
        if segment is not None:
            segment.ended = True
            if segment.stream is not None:
                segment.stream.end()
            self._changed.set()

    def _due(self) -> float | None:
        if self._input is None:
            seconds = self._idle_seconds
            if seconds is not None and self._draining:
                seconds = min(seconds, LULL_SECONDS)
        else:
            # Text that waits behind other speech can as well wait for more.
            seconds = None if self._input.stream is None else self.hold_seconds
        return None if seconds is None or self.ended else self._active_at + seconds

    def _on_time(self) -> None:
        due = self._due()
        if due is not None and time.monotonic() >= due:
            if self._input is not None:
                self._end_segment()
            elif not self.speaking:
                self.end()
            else:
                self._active_at = time.monotonic()
        self._alarm.set(self._due())

    # Sound.

    async def _run(self) -> None:
        try:
            if self._after is not None:
                await asyncio.wait([self._after._pump])  # which a cancel of this one leaves alone
                self._after = None
            while not (self.ended and not self._segments):
                if self._segments:
                    await self._speak(self._segments[0])
                    self._chars -= self._segments.popleft().text_chars
                    self._was_active()
                    self._host.segment_over()
                else:
                    self._changed.clear()
                    await self._changed.wait()
            await self._sound.finish(self._last)
            await self._sound.send(self._events.done(self))
        except SpeechError as error:
            self._fail(error.failure)
        except RequestError as error:
            self._fail(TurnFailure(error.code, str(error), False))
        except WriterFullError:
            self._host.lost(SLOW_READER)
        except Exception:
            self._host.bug()
            self._fail(TurnFailure("internal", "a fault of the server", True))
        else:
            self._clean()
            self._host.context_over(self)

    async def _speak(self, segment: Segment) -> None:
        if segment.text_chars:
            stream = self._host.open_stream(self, self._heard_at)
            with contextlib.closing(stream):
                segment.stream = stream
                stream.feed("".join(segment.pieces))
                if segment.ended:
                    stream.end()
                segment.pieces.clear()
                self._alarm.set(self._due())
                await self._sound.play(stream, segment)
                self._last = segment
                self._heard_at = stream.heard_at()
                segment.reason = stream.reason
        elif segment.blank:
            await self._sound.rest(segment)
            self._last = segment
        if self._input is segment:  # its speech reached the limit; text that follows is a new one
            self._end_segment()
        if self._per_segment:
            await self._sound.finish(segment)
        await self._sound.send(self._events.segment_done(self, segment))

    # The end.

    def _fail(self, failure: TurnFailure) -> None:
        self.ended = True
        if failure.code == SLOW_READER:
            self._host.lost(SLOW_READER)
        else:
            self._host.writer.drop(self)
            try:
                for message in self._events.failed(self, failure):
                    self._host.writer.put(message)
            except WriterFullError:
                self._host.lost(SLOW_READER)
            except Exception:
                self._host.bug()
        self._clean()
        self._host.context_over(self)

    def _clean(self, reason: str = "closed") -> None:
        self._alarm.stop()
        for segment in self._segments:
            if segment.stream is not None:
                segment.stream.close(reason)
        self._segments.clear()
        self._input = None
        self._sound.close()
