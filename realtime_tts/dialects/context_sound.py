"""ContextSound: what is heard of a context, segment after segment through one encoder."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from realtime_tts.audio.encoders import Encoder
from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.dialects.segment import ContextEvents, Messages, Segment
from realtime_tts.dialects.silence import SILENCE, STALL_SECONDS, silences
from realtime_tts.dialects.socket_writer import SocketWriter
from realtime_tts.dialects.timing import moved
from realtime_tts.protocol.messages import SAMPLE_RATE
from realtime_tts.server.speech import SpeechStream

if TYPE_CHECKING:
    from realtime_tts.dialects.context import SpeechContext


class ContextSound:
    """Turns packets into a context's messages and sends them. `seconds`: of sound, so far.

    An encoder is there from the start, so that a format that cannot be had is refused; after
    `finish` the next sound makes a new one. All methods raise WriterFullError.
    """

    def __init__(
        self,
        context: SpeechContext,
        make_encoder: Callable[[], Encoder],
        events: ContextEvents,
        writer: SocketWriter,
    ) -> None:
        self.seconds = 0.0
        self._context = context
        self._make_encoder = make_encoder
        self._encoder: Encoder | None = make_encoder()
        self._events = events
        self._writer = writer

    async def play(self, stream: SpeechStream, segment: Segment) -> None:
        """All that the stream has, until it is done. Raises SpeechError if it fails."""
        started = False
        while True:
            stalled = False
            try:
                packet = await stream.next(STALL_SECONDS)
            except TimeoutError:
                stalled, packet = True, b""
            if not started:
                started = True
                await self.send(self._events.segment_started(self._context, segment))
                stalled = stalled or packet is None
            if stalled:
                await self._silence(segment)
            if packet:
                await self._encode(packet, segment)
            while (span := stream.take_spoken()) is not None:
                # Silence of ours, and the segments before, came before what the stream counts.
                before = self.seconds - stream.samples / SAMPLE_RATE
                later = moved(span, before)
                await self.send(self._events.spoken(self._context, segment, later))
            if packet is None:
                return

    async def rest(self, segment: Segment) -> None:
        """A segment of text without anything to speak."""
        await self.send(self._events.segment_started(self._context, segment))
        await self._silence(segment)

    async def finish(self, segment: Segment) -> None:
        """What the encoder still has; it belongs to the segment that sounded last."""
        encoder, self._encoder = self._encoder, None
        if encoder is not None:
            with contextlib.closing(encoder):
                data = encoder.finish() if segment.seconds else b""
            if data:
                await self.send(self._events.sound(self._context, segment, data))

    async def send(self, messages: Messages) -> None:
        """Messages of the context, in their place between its sound."""
        for message in messages:
            await self._writer.send(message, self._context)

    def close(self) -> None:
        """Give up what the encoder has. Idempotent."""
        encoder, self._encoder = self._encoder, None
        if encoder is not None:
            encoder.close()

    async def _silence(self, segment: Segment) -> None:
        """A little, and as much more as the encoder needs to give something."""
        for data in silences(self._open()):
            await self._made(data, SILENCE, segment)

    async def _encode(self, pcm: bytes, segment: Segment) -> None:
        await self._made(self._open().encode(pcm), pcm, segment)

    def _open(self) -> Encoder:
        if self._encoder is None:
            self._encoder = self._make_encoder()
        return self._encoder

    async def _made(self, data: bytes, pcm: bytes, segment: Segment) -> None:
        """`data`, which may be nothing yet, was made of `pcm`."""
        seconds = len(pcm) / BYTES_PER_SAMPLE / SAMPLE_RATE
        self.seconds += seconds
        segment.seconds += seconds
        if data:
            await self.send(self._events.sound(self._context, segment, data))
