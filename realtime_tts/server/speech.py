"""SpeechStream: one turn without a session, for requests and contexts that bring their own rules.

An HTTP request, or one of the contexts that another API runs over a socket, is a stream of text in
and of packets out. It has the turn, the engine and the accounting of a session's turn; queueing,
message formats and ends are its owner's business. Owners get theirs from `Front.open_speech`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from realtime_tts.audio.packets import Packet
from realtime_tts.engine.link import Audio, Ended, Event, Failed, Refused, Started
from realtime_tts.errors import RealtimeTTSError
from realtime_tts.protocol.effects import TurnFailure
from realtime_tts.protocol.messages import ErrorMessage
from realtime_tts.protocol.settings import SessionSettings
from realtime_tts.server.deadline import Alarm
from realtime_tts.server.engine_host import EngineHost
from realtime_tts.server.reporter import SessionReporter
from realtime_tts.server.turn import OnAirTurn
from realtime_tts.server.turn_input import TurnInput
from realtime_tts.text.speech_times import SpokenSpan

__all__ = ["SpeechError", "SpeechStream", "SpokenSpan"]


class SpeechError(RealtimeTTSError):
    """The server did not take a stream, or could not finish it; `failure` says all there is."""

    code = "speech_failed"

    def __init__(self, failure: TurnFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class SpeechStream:
    """Feed it text, `end` it, and take packets with `next` until it gives None.

    Whoever opened it calls `close` in any case, or the engine speaks on for nobody.
    `max_waiting_bytes`: an owner that takes packets so slowly that more wait has lost the stream.
    """

    def __init__(
        self,
        stream_id: str,
        settings: SessionSettings,
        engine: EngineHost,
        reporter: SessionReporter,
        max_waiting_bytes: int,
        on_closed: Callable[[SpeechStream], None],
        *,
        listener_free_at: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stream_id = stream_id
        self.text_chars = 0
        self._engine = engine
        self._reporter = reporter
        self._max_waiting_bytes = max_waiting_bytes
        self._on_closed = on_closed
        self._clock = clock
        self._turn = OnAirTurn(
            stream_id, stream_id, settings, engine, self._on_event, listener_free_at
        )
        self._input = TurnInput(self._turn, engine.rounds, clock, self._contained, self._end_text)
        self._packets: deque[Packet] = deque()
        self._waiting_bytes = 0
        self._given: int | None = None  # samples in the packet that `next` gave last
        self._over = False  # no more packets come in
        self._closed = False
        self._changed = asyncio.Event()
        self._alarm = Alarm(clock, self._on_time)

    # Text.

    def feed(self, text: str) -> None:
        """Add text; not after `end`. A long one is taken in bit by bit: see `taken_in`."""
        self.text_chars += len(text)
        self._input.feed(text)
        self._set_alarm()

    async def taken_in(self) -> None:
        """Wait until all text so far was taken in, or the stream has ended."""
        await self._input.taken_in()

    def end(self) -> None:
        """No more text. A text without anything to speak is over without a packet."""
        self._input.end()

    def _end_text(self) -> None:
        if not self._turn.end(self._clock()):
            self._finish()
        elif self._turn.over and not self._over:  # all was spoken but the pause at the end
            self._put(self._turn.last_packets())
            self._finish()

    def _on_time(self) -> None:
        if not self._over and not self._input.busy:
            with self._contained():
                self._turn.poll(self._clock())

    def _set_alarm(self) -> None:
        """For text that is held back; while more is taken in, it is not held back."""
        if not self._over and not self._input.busy:
            self._alarm.set(self._turn.text_deadline())

    @contextmanager
    def _contained(self) -> Iterator[None]:
        """One stream's fault ends that one, and keeps nothing from the others."""
        try:
            yield
        except Exception:
            self._reporter.bug()
            self.fail(TurnFailure("internal", "a fault of the server", retryable=True))
        else:
            self._set_alarm()

    # Sound.

    async def next(self, within: float | None = None) -> bytes | None:
        """The next packet (s16le, 24 kHz, mono), or None when all were given.

        Asking for it says that the one before has been handed over. Raises SpeechError if the
        stream failed, as soon as it did, and TimeoutError after `within` seconds without a packet.
        """
        self._handed_over()
        if self._packets:  # who encodes one after another leaves room for others in between
            await asyncio.sleep(0)
        async with asyncio.timeout(within):
            while not self._packets and not self._over:
                self._changed.clear()
                await self._changed.wait()
        if self._turn.failure is not None:
            raise SpeechError(self._turn.failure)
        if not self._packets:
            return None
        data, self._given = self._packets.popleft()
        self._waiting_bytes -= len(data)
        self._turn.packet_taken(self._given)
        return data

    @property
    def reason(self) -> str:
        """Why the speech ended, as in `turn.done`; complete while it has not."""
        return self._turn.reason

    @property
    def text_tokens(self) -> int:
        """Text tokens given to the engine so far."""
        return self._turn.text_tokens

    @property
    def samples(self) -> int:
        """Samples taken so far, at 24 kHz."""
        return self._turn.stats().samples

    def take_spoken(self) -> SpokenSpan | None:
        """The next text that became spoken with the packets taken so far; None when all was given.

        An estimate, like `text_spoken`: text/speech_times.py says how it is made.
        """
        words = self._turn.take_words()
        if not words:
            return None
        return SpokenSpan("".join(word.text for word in words), words[0].start, words[-1].end)

    def heard_at(self) -> float | None:
        """When the listener will have heard what was taken so far."""
        return self._turn.heard_at()

    def _handed_over(self) -> None:
        if self._given is not None:
            self._reporter.packet(self._turn.packet_sent(self._given, self._clock()))
            self._given = None

    # The end.

    def fail(self, failure: TurnFailure) -> None:
        """End the stream now; its owner hears why from `next`."""
        if not self._over:
            self._turn.failure = failure
            self._engine.cancel(self._turn.utterance_id)
            self._finish()

    def close(self, reason: str = "closed") -> None:
        """The owner is done with the stream, or gone: nothing is spoken any more. Idempotent.

        `reason`: what is reported if there was more to come; `interrupted` by the listener, say.
        """
        if self._closed:
            return
        self._closed = True
        self._engine.cancel(self._turn.utterance_id)
        # Before the report: it may fail, and the place must be free in any case.
        self._on_closed(self)
        cut_short = not self._over or bool(self._packets)
        self._finish()
        self._turn.drop()
        self._packets.clear()
        self._report(reason if cut_short and self._turn.failure is None else self._turn.reason)

    def _finish(self) -> None:
        self._over = True
        self._input.drop()
        self._alarm.stop()
        self._changed.set()

    def _report(self, reason: str) -> None:
        self._handed_over()
        failure, stats = self._turn.failure, self._turn.stats()
        if failure is not None:
            reason = "error"
            error = ErrorMessage(
                code=failure.code, message=failure.message, fatal=False,
                retryable=failure.retryable, turn_id=self.stream_id,
            )  # fmt: skip
            self._reporter.message(error)
        self._reporter.done(self.stream_id, reason, stats, self.text_chars)

    # Engine → turn → packets.

    def _on_event(self, event: Event) -> None:
        with self._contained():
            self._take(event)

    def _take(self, event: Event) -> None:
        match event:
            case Audio():
                self._put(self._turn.audio(event))
            case Started(layout=layout):
                self._turn.layout = layout
            case Ended() | Failed() | Refused():
                self._engine.forget(event.id)
                self._put(self._turn.ended(event, self._clock()))
                if self._turn.over:
                    self._finish()

    def _put(self, packets: list[Packet]) -> None:
        self._packets.extend(packets)
        self._waiting_bytes += sum(len(data) for data, _ in packets)
        self._changed.set()
        if self._waiting_bytes > self._max_waiting_bytes:
            message = f"{self._waiting_bytes} bytes of audio wait for the client to read"
            self.fail(TurnFailure("slow_reader", message, retryable=False))
