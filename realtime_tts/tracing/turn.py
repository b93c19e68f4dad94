"""TurnTrace: the moments of a turn, noted as they pass, and the spans they become at its end.

Moments are seconds on the monotonic clock. Only the turn's own span begins before the end: its ids
are in the log from its beginning.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from realtime_tts.engine.link import Audio, Ended, Event, Failed, Refused, Started, Waits
from realtime_tts.protocol.effects import Begun, TurnStats
from realtime_tts.protocol.messages import SAMPLE_RATE, TurnDone
from realtime_tts.tracing import names

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_MOST = 64
"""The most spans of one name, and events, in one turn: its text may pause at each word."""
_BETWEEN = 0.02
"""Seconds between two utterances of a turn, above which that is a wait for text."""


class Spoken(Protocol):
    """What a trace needs to know of a turn's text in the engine."""

    opened_at: float | None
    """When the engine first had some of the text."""
    text_tokens: int


class _Part(NamedTuple):
    name: str
    begins: float
    ends: float
    attributes: Mapping[str, str | float | bool] = {}


class SpanWriter(Protocol):
    """A writer of spans, such as a `Tracer`."""

    def child(
        self, of: Span, name: str, begins: int, ends: int, attributes: Mapping[str, Any]
    ) -> None:
        """Write the span of a part of a turn, between these nanoseconds since 1970."""

    def mark_failed(self, span: Span, code: str) -> None:
        """Mark the turn's span as failed with this code."""


class TurnTrace:
    """The trace of a turn, made by `Tracer.begin`; `end` it once. `ids`: for the log, and for
    exemplars where the span is `sampled`. `to_wall`: what makes a moment seconds since 1970."""

    def __init__(self, writer: SpanWriter, span: Span, begun: Begun, to_wall: float) -> None:
        context = span.get_span_context()
        self.sampled = context.trace_flags.sampled
        self.ids = {
            "trace_id": f"{context.trace_id:032x}",
            "span_id": f"{context.span_id:016x}",
        }
        self._writer, self._span = writer, span
        self._began, self._waits = begun.at, begun.waits
        self._on_air_at = begun.at
        self._to_wall = to_wall
        self._spoken: Spoken | None = None
        self._made_at: float | None = None
        self._first_sent_at: float | None = None
        self._started: list[tuple[float, Started]] = []
        self._starved_at: float | None = None
        self._held = 0.0  # seconds of the present utterance, as the engine counts
        self._holds: list[tuple[float, float]] = []
        self._late: list[tuple[float, float]] = []
        self._encoding: tuple[float, float] | None = None  # from the first time to the last
        self._encoding_seconds = 0.0

    @property
    def exemplar(self) -> dict[str, str] | None:
        """The ids that tie a measured value to this turn; None if it is not sampled."""
        return self.ids if self.sampled else None

    # As it passes.

    def on_air(self, spoken: Spoken, now: float) -> None:
        """Note that the turn's text is taken in from now on."""
        self._on_air_at, self._spoken = max(self._began, now), spoken

    def took(self, event: Event, now: float) -> None:
        """Note an event of the engine."""
        match event:
            case Audio():
                self._was_held(event.held_seconds, now)
            case Started():
                if self._made_at is not None and now - self._made_at > _BETWEEN + event.seconds:
                    self._holds.append((self._made_at, now - event.seconds))
                self._made_at = None
                self._started.append((now, event))
            case Waits():
                self._starved_at = now
            case Ended() | Failed():
                self._was_held(event.held_seconds, now)
                self._made_at, self._held = now, 0.0
            case Refused():
                self._made_at = now

    def sent(self, late_seconds: float, now: float) -> None:
        """Note that a packet was handed to the socket, `late_seconds` after its deadline."""
        if self._first_sent_at is None:
            self._first_sent_at = now
        if late_seconds > 0:
            self._late.append((now, late_seconds))

    @contextmanager
    def encoding(self) -> Iterator[None]:
        """Note that sound is encoded in this block."""
        begins = time.monotonic()
        try:
            yield
        finally:
            now = time.monotonic()
            self._encoding_seconds += now - begins
            self._encoding = begins if self._encoding is None else self._encoding[0], now

    def _was_held(self, seconds: float, now: float) -> None:
        """Record a hold that ends now. `seconds`: all the time that the utterance has waited for
        text so far."""
        more, self._held = seconds - self._held, seconds
        if more > 0:
            begins = now - more if self._starved_at is None else self._starved_at
            self._holds.append((begins, begins + more))
            self._starved_at = None

    # At the end.

    def end(self, done: TurnDone, error: str, before: TurnStats) -> None:
        """Write the spans: the turn is over now, because of `error` if it failed. `before`: what of
        it was spoken on other sockets."""
        now = time.monotonic()
        if self._span.is_recording():
            for part in self._parts(now, spoken=done.reason != "interrupted"):
                begins, ends = self._ns(part.begins), self._ns(part.ends)
                self._writer.child(self._span, part.name, begins, ends, part.attributes)
            self._describe(done, error, before)
        self._span.end(self._ns(now))

    def _describe(self, done: TurnDone, error: str, before: TurnStats) -> None:
        span = self._span
        for at, started in self._started[:_MOST]:
            if started.moved:
                span.add_event(names.MOVED, timestamp=self._ns(at))
        for at, seconds in self._late[:_MOST]:
            span.add_event(names.UNDERRUN, {names.LATE: seconds}, timestamp=self._ns(at))
        attributes: dict[str, str | int | float] = {
            names.REASON: done.reason,
            names.CHARACTERS: done.text_chars,
            names.AUDIO_SECONDS: round(done.samples / SAMPLE_RATE, 4),
            names.UNDERRUNS: done.underruns,
            names.HELD: round(done.held_ms / 1000, 4),
            names.HELD_INSIDE_WORD: done.held_inside_word,
            names.HOLDS: len(self._holds),
            names.MOVES: done.moves,
            names.INPUT_TOKENS: 0 if self._spoken is None else self._spoken.text_tokens,
            names.RESUMED: before.samples > 0,
        }
        if self._started:
            attributes |= _by(self._started[-1][1])
        if done.ttfa_ms is not None:
            attributes[names.TTFA] = round(done.ttfa_ms / 1000, 4)
        span.set_attributes(attributes)
        if done.reason == "error":
            self._writer.mark_failed(span, error or "_OTHER")

    def _parts(self, now: float, *, spoken: bool) -> Iterator[_Part]:
        taken_at = self._began
        if self._waits:
            taken_at = self._on_air_at
            yield _Part(names.QUEUE, self._began, taken_at, {names.QUEUE_OF: "session"})
        if self._spoken is None:
            return  # its text was never taken in
        opened_at = self._spoken.opened_at
        yield _Part(names.TOKENISE, taken_at, opened_at or now)
        if opened_at is not None:
            yield from self._engine_parts(opened_at, now)
        for begins, ends in self._holds[:_MOST]:
            yield _Part(names.HOLD, begins, ends)
        if self._encoding is not None:
            seconds = {names.ENCODE_SECONDS: round(self._encoding_seconds, 6)}
            yield _Part(names.ENCODE, *self._encoding, seconds)
        if self._made_at is not None and self._first_sent_at is not None and spoken:
            yield _Part(names.DRAIN, self._made_at, now)

    def _engine_parts(self, opened_at: float, now: float) -> Iterator[_Part]:
        if not self._started:
            yield _Part(names.QUEUE, opened_at, self._made_at or now, {names.QUEUE_OF: "engine"})
            return
        first_at, first = self._started[0]
        queued_until = max(opened_at, first_at - first.seconds)
        yield _Part(names.QUEUE, opened_at, queued_until, {names.QUEUE_OF: "engine"})
        for at, started in self._started[:_MOST]:
            begins = max(opened_at, at - started.seconds)
            yield _Part(names.PREFILL, begins, at, {names.LAYOUT: started.layout, **_by(started)})
        if self._first_sent_at is not None:
            yield _Part(names.FIRST_PACKET, first_at, self._first_sent_at)

    def _ns(self, at: float) -> int:
        return int((at + self._to_wall) * 1e9)


def _by(started: Started) -> dict[str, str]:
    """Return which engine has a turn, where it is a process of its own."""
    return {names.ENGINE: started.engine} if started.engine else {}
