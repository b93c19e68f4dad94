"""Speech: one voice that speaks segments of text one after another, on one timeline.

A turn of a session, an HTTP request and each context of another API's socket is a speech: text goes
in, and packets come out in its listener's format, with the ends of segments and the times of words.
A segment is text that is spoken to its end: `cut` ends one, and later text begins another. Only the
first is in the engine (`Utterances`); its sound is encoded by `Track`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from math import inf

from realtime_tts.engine.link import Audio, Event, Started
from realtime_tts.protocol.effects import HeardReport, TurnFailure
from realtime_tts.protocol.messages import SAMPLE_RATE
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.alarm import Alarm
from realtime_tts.server.engine_host import EngineHost
from realtime_tts.server.ledger import Ledger
from realtime_tts.server.made import Made
from realtime_tts.server.refusals import SLOW_READER
from realtime_tts.server.resumption import Resumption
from realtime_tts.server.session_settings import chain_for
from realtime_tts.server.text_input import TextInput
from realtime_tts.server.track import STALL_SECONDS, Delivery, Done, Segment, Sound, Track
from realtime_tts.server.utterances import Utterances
from realtime_tts.text.speech_times import SpokenSpan
from realtime_tts.tracing.turn import TurnTrace
from tts_scheduler import FeedPace


class Speech:
    """One voice. `feed` it text, and `take` packets whenever `on_change` says that there may be
    some, until it is `done`; or wait with `next`. The owner must `close` it, or the engine speaks
    for nobody. `contained` contains exceptions in callbacks; None: they fail this speech.
    `hold_seconds`: text that pauses for this time ends its segment. `feed_pace`: the pace of the
    session's texts. `starts`: False to wait for `start`. `trace` begins the trace of a segment. The
    speech fails if more than `max_waiting_bytes` of PCM wait for its owner."""

    def __init__(
        self,
        name: str,
        settings: SessionSettings,
        engine: EngineHost,
        delivery: Delivery,
        max_waiting_bytes: int,
        ledger: Ledger,
        *,
        contained: AbstractContextManager[None] | None = None,
        hold_seconds: float = inf,
        listener_free_at: float | None = None,
        feed_pace: FeedPace | None = None,
        starts: bool = True,
        trace: Callable[[str, bool], TurnTrace | None] = lambda name, waits: None,
    ) -> None:
        self.name, self.settings = name, settings
        self.failure: TurnFailure | None = None
        self.ended = False  # whether no more text comes
        self._engine, self._ledger = engine, ledger
        self._max_waiting_bytes = max_waiting_bytes
        self._contained = contained or ledger.reporter.contained(self.fail)
        self._hold_seconds, self._feed_pace = hold_seconds, feed_pace or FeedPace()
        self._starts, self._trace, self._closed = starts, trace, False
        self.segments: deque[Segment] = deque()  # not done; the first is on the air
        self.open: Segment | None = None  # the last, while it takes text
        self.last = Segment(0)  # the one on the air, or the last that was
        self.count = 0  # number of segments so far
        self.track = Track(delivery, settings.audio, partial(chain_for, settings, engine))
        self._active_at = time.monotonic()
        self._fill_at = inf  # when silence is due
        self._alarm = Alarm(self._on_time)
        self._given: Sound | Done | None = None  # taken last
        self._changed = asyncio.Event()
        self.on_change: Callable[[], None] = self._changed.set
        """Called when there may be something to take; may be replaced."""
        if (resumption := ledger.resumption) is not None:
            self.track.resume(resumption.samples, resumption.made)
        self._prepare(listener_free_at, resumption)

    # Text.

    def feed(self, text: str, *, ends: bool = False) -> Segment:
        """Add text to the segment; not after `end`. `ends`: `cut` or `end` comes next.

        Raises TurnFailure if the engine is too full for the turn that begins with it, or its
        account has no more turns or characters: then none of the text is added or counted. A speech
        that has failed takes none.
        """
        assert not self.ended, "text after the end of the speech"
        if self.failure is not None:
            return self._segment()
        charged = self._ledger.charge(text, begins=self.open is None)
        segment = self._segment()
        segment.add(text, charged)
        if segment.utterances is not None:
            self._input.feed(text, ends=ends)
        if not ends:
            self.touch()
        return segment

    def commit(self) -> None:
        """Speak all text so far to its end; text that follows continues the same segment."""
        self._input.commit()
        self._set_alarm()

    def cut(self, *, wants_sound: bool = False) -> Segment:
        """Speak all text so far to its end; text that follows begins a new segment. `wants_sound`:
        where silence fills, the segment gets some even without text."""
        segment, self.open = self._segment(), None
        segment.ended = True
        segment.wants_sound = segment.wants_sound or wants_sound
        if segment.utterances is not None:
            self._input.end()
        return segment

    def end(self) -> None:
        """End the text. Idempotent."""
        self.ended = True
        if self.open is not None:
            self.cut()
        self.on_change()

    def hold_for(self, seconds: float) -> None:
        """End the segment when its text pauses for this time."""
        self._hold_seconds = seconds
        self._set_alarm()

    def touch(self) -> None:
        """Begin the pause after the last text anew."""
        self._active_at = time.monotonic()
        self._set_alarm()

    def start(self) -> None:
        """Begin to speak, if that had to wait."""
        self._starts = True
        self._begin()

    def _segment(self) -> Segment:
        if self.open is None:
            waits = bool(self.segments) or not self._starts
            trace = self._trace(self._name_of(self.count), waits)
            self.open = Segment(self.count, pushed=self.track.given, trace=trace)
            self.count += 1
            self.segments.append(self.open)
            self._begin()
        return self.open

    def _prepare(self, free_at: float | None, resumption: Resumption | None = None) -> None:
        """Make the utterances of the segment that is next on the air."""
        self.utterances = Utterances(
            self._name_of(self.count - len(self.segments)),
            self.settings,
            self._engine,
            self._on_event,
            free_at,
            self._feed_pace,
            self._ledger.account,
            saved=self.track.delivery.saved,
            resumption=resumption,
        )
        if self.utterances.progress is not None:
            self.utterances.progress.paid = self._ledger.text
        engine, settings, client = self._engine, self.settings, self._ledger.reporter.client
        told = self._contained, self._end_text, self.fail
        self._input = TextInput(self.utterances, engine, settings, client, *told)

    def _name_of(self, number: int) -> str:
        return f"{self.name}-{number}" if number else self.name

    def _begin(self) -> None:
        """Put the first segment on the air, if there is one that is not there yet."""
        if not (self._starts and self.segments and self.segments[0].utterances is None):
            return
        segment = self.last = self.segments[0]
        segment.utterances = self.utterances
        if segment.trace is not None:
            segment.trace.on_air(self.utterances, time.monotonic())
        if segment.pieces:
            self._input.feed("".join(segment.pieces))
            segment.pieces.clear()
            self.touch()
        if segment.ended:
            self._input.end()
        self.on_change()  # from now on its listener waits for sound

    def _end_text(self) -> None:
        self._put(self.utterances.end(time.monotonic()))

    # Time.

    def _due(self) -> tuple[float, float]:
        """Return when held text is released, and when text that pauses is cut. Text still being
        processed is not held; text that waits behind other speech may wait for more."""
        if self._input.busy:
            return inf, inf
        on_air = self.open is not None and self.open.utterances is not None
        pause = self._active_at + self._hold_seconds if on_air else inf
        return self.utterances.text_deadline(), pause

    def _set_alarm(self) -> None:
        if not self._closed and self.failure is None:
            self._alarm.set(min(*self._due(), self._fill_at))

    def _on_time(self) -> None:
        now = time.monotonic()
        held, pause = self._due()
        with self._contained:
            if held <= now:
                self.utterances.poll(now)
            if pause <= now:
                self.cut()
            if self._fill_at <= now:
                self._fill_at = inf
                self.track.fill(self.segments[0])
                self.on_change()
            self._set_alarm()

    # Sound.

    def _on_event(self, event: Event) -> None:
        assert event.id == self.utterances.utterance_id, "events end with their utterance"
        with self._contained:
            now = time.monotonic()
            if self.segments[0].trace is not None:
                self.segments[0].trace.took(event, now)
            made = self.utterances.take(event, now)
            self.failure = self.failure or self.utterances.failure
            self._put(made)
            if not isinstance(event, Audio | Started):  # these change nothing that waits for time
                self._set_alarm()

    def _put(self, made: Made) -> None:
        if not made:
            return
        self._fill_at = inf
        self.track.add(self.segments[0], made)
        if self.track.waiting_bytes > self._max_waiting_bytes:
            message = f"{self.track.waiting_bytes} bytes of audio wait for the client to read"
            self.fail(TurnFailure(SLOW_READER, message, retryable=False))
        self.on_change()

    @property
    def done(self) -> bool:
        """Whether nothing more comes."""
        return self._closed or (self.ended and not self.segments)

    def take(self, *, fill: bool = False) -> Sound | Done | None:
        """Return what comes next, if it is there. With `fill`, silence is made if nothing comes.

        The call also says that the one before has been handed over. Raises TurnFailure if the
        speech failed, after everything made before was returned.
        """
        self.handed_over()
        if self._closed:
            return None
        given = self.track.take()
        if given is None and self.done:
            self.track.finish()
            given = self.track.take()
        if self.failure is not None and not isinstance(given, Sound):
            raise self.failure
        self._given = given
        if given is not None:
            self.track.taken(given)
        elif fill and self.segments and self.segments[0].utterances is not None:
            self._fill_at = time.monotonic() + STALL_SECONDS
            self._set_alarm()
        return given

    async def next(self, *, fill: bool = False) -> Sound | Done | None:
        """Wait for what comes next; return None when everything was returned."""
        if self.track:  # a fast consumer must not starve other tasks
            await asyncio.sleep(0)
        while (given := self.take(fill=fill)) is None and not self.done:
            self._changed.clear()
            await self._changed.wait()
        return given

    def handed_over(self) -> None:
        """Note that what was taken last was sent; a segment's end begins the next one."""
        if (late := self.track.sent()) is not None:
            self._ledger.reporter.packet(late, self.segments[0].trace)
        given, self._given = self._given, None
        if self._closed or not isinstance(given, Done):
            return
        self._ledger.over(given.segment, given.segment.reason, self.failure)
        if self.segments.popleft() is self.open:
            self.open = None  # it ended by itself, at its limit
        self._input.drop()
        if self.segments or not self.ended:
            self._prepare(self.utterances.listener.heard_at())
            self._begin()

    @property
    def seconds(self) -> float:
        """Seconds of sound taken so far."""
        return self.track.seconds

    def take_words(self) -> list[SpokenSpan]:
        """Return the next words that became spoken with the sound taken so far, in seconds of all
        sound; none when all were returned. text/speech_times.py says how they are found."""
        words = self.utterances.listener.take_words()
        shift = self.segments[0].shift / SAMPLE_RATE if self.segments else 0.0
        return [word.later(shift) for word in words] if shift else words

    # The end.

    def silence(self, played_samples: int | None = None) -> HeardReport:
        """Speak nothing more, and drop what was not taken; return what was heard of the segment on
        the air. Idempotent, also after `close`."""
        self._stop()
        return self.utterances.listener.heard(played_samples, time.monotonic())

    def fail(self, failure: TurnFailure) -> None:
        """End the speech now; `take` raises the failure to its owner."""
        if not self._closed and self.failure is None:
            self.failure = failure
            self._stop()
            self.on_change()

    def close(self, reason: str = "closed") -> None:
        """Release the speech: nothing is spoken any more. Idempotent. `reason` is reported if there
        was more to come, for example `interrupted`."""
        if self._closed:
            return
        self._closed = True
        at_end = self.utterances.over and not self.track
        self._stop()
        self.handed_over()
        for segment in self.segments:
            self._ledger.over(segment, self.utterances.reason if at_end else reason, self.failure)
        self.segments.clear()
        self.open = None
        self.on_change()
        # Break the cycles through this object, so that no garbage collection is needed.
        self.on_change, self._contained = self._changed.set, nullcontext()
        for part in (self._alarm, self._input, self.utterances):
            part.release()

    def _stop(self) -> None:
        self.utterances.cancel()
        self._input.drop()
        self._alarm.stop()
        self.track.drop()
