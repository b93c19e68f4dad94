"""Track: the sound of a speech on its way out, segment after segment, in the wanted format.

Sound is encoded only when somebody takes it: dropped sound was never encoded, and when sound of
many speeches comes at once, each encodes one packet at a time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from realtime_tts.audio.formats import AudioFormat
from realtime_tts.audio.packets import Packet, Packets, packets_in
from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.audio.stages import Chain
from realtime_tts.protocol.messages import SAMPLE_RATE
from realtime_tts.server.made import Made, Mark, Volume
from realtime_tts.server.utterances import Utterances
from realtime_tts.tracing.turn import TurnTrace

STALL_SECONDS = 2.5
"""Seconds without sound after which some silence is sent: clients give up after three."""
_SILENCE = bytes(SAMPLE_RATE // 10 * BYTES_PER_SAMPLE)  # a tenth of a second
_MOST_SILENCES = 10  # until an encoder gives a packet: the slowest, MP3 at 8 kHz, takes four


@dataclass(frozen=True, slots=True)
class Delivery:
    """How the sound of a speech is delivered."""

    packets_in: Callable[[AudioFormat, Chain], Packets] = packets_in
    """Makes packets in a format. Raises RequestError if this server cannot make it."""
    continuous: bool = False
    """Whether one encoder serves all segments; otherwise each is a file of its own."""
    fills: bool = False
    """Whether silence replaces late or missing sound, which some clients take for a failure."""
    saved: bool = False
    """Whether the client saves the sound, as fast as it comes: `lead_ms` counts from what was
    taken, not from what would have been heard by now."""


@dataclass(slots=True, eq=False)
class Segment:
    """A piece of text that is spoken to its end. `tag`, `flushed` and `told` are its owner's."""

    number: int
    """The number of the segment in its speech, from 0."""
    tag: Any = None
    flushed: bool = False
    """Whether the client asked for its end; otherwise a pause or the end of all text ended it."""
    told: bool = False
    """Whether the client knows of it."""
    text_chars: int = 0
    charged: int = 0
    """Characters of it that its account was charged for: see `Ledger`."""
    wants_sound: bool = False
    """Whether, where silence fills, it gets some even if there is nothing to speak."""
    ended: bool = False
    """Whether no more text comes."""
    sounds: bool = False
    begins: float = 0.0
    """Seconds of the speech's sound before it, once it sounds."""
    shift: int = 0
    """Samples of sound so far that are not its own speech: earlier segments, and silence."""
    pieces: list[str] = field(default_factory=list)  # its text, until it is on the air
    utterances: Utterances | None = None  # once it is on the air
    pushed: int = 0  # samples of its speech that were encoded
    trace: TurnTrace | None = None  # if turns are traced

    def add(self, text: str, charged: int) -> None:
        """Add text, of which this many characters were charged."""
        self.text_chars += len(text)
        self.charged += charged
        self.wants_sound = True
        if self.utterances is None:
            self.pieces.append(text)

    @property
    def samples(self) -> int:
        """Samples of its speech that were sent."""
        return 0 if self.utterances is None else self.utterances.stats().samples

    @property
    def text_tokens(self) -> int:
        """Text tokens that the engine got."""
        return 0 if self.utterances is None else self.utterances.text_tokens

    @property
    def reason(self) -> str:
        """Why it ended, as in `turn.done`."""
        return "complete" if self.utterances is None else self.utterances.reason


class Sound(NamedTuple):
    """A packet in the wanted format, with the number of the engine's samples (24 kHz) in it."""

    segment: Segment
    data: bytes
    samples: int


class Done(NamedTuple):
    """The end of a segment, after all its sound."""

    segment: Segment


class Track:
    """The sound of a speech: `add` what was made, `take` what to send, and say when it is `taken`
    and `sent`. Raises RequestError if there is no encoder for the format. `new_chain` makes the
    audio stages of each encoder."""

    def __init__(
        self, delivery: Delivery, audio: AudioFormat, new_chain: Callable[[], Chain]
    ) -> None:
        self.waiting_bytes = 0
        """Bytes of PCM that were not taken."""
        self.delivery, self._audio, self._new_chain = delivery, audio, new_chain
        self._chain = new_chain()
        self._packets: Packets | None = delivery.packets_in(audio, self._chain)
        self._made: deque[tuple[Segment, bytes | Mark | Volume]] = deque()
        self._ready: deque[Sound | Done] = deque()
        self._pushed = 0  # samples that were encoded
        self._last: Segment | None = None  # the last that sounded
        self._taken = 0  # samples taken
        self.given = 0
        """Samples that were sent on another socket."""
        self._given_elsewhere = 0  # samples still to be added that were sent elsewhere
        self._handing: tuple[Segment, int] | None = None  # samples of speech taken last

    def resume(self, given: int, made: int) -> None:
        """Continue after `given` samples that were sent on another socket: the next that are added
        follow `made` of them, and those that were sent are left out."""
        self.given = self._pushed = self._taken = given
        self._given_elsewhere = given - made

    def __bool__(self) -> bool:
        """Return whether there is something to take."""
        return bool(self._made or self._ready)

    def add(self, segment: Segment, made: Made) -> None:
        """Add sound of the segment, or its end."""
        for one in made:
            if isinstance(one, bytes) and self._given_elsewhere:
                size = min(len(one), self._given_elsewhere * BYTES_PER_SAMPLE)
                self._given_elsewhere -= size // BYTES_PER_SAMPLE
                one = one[size:]
            if not one:
                continue
            self._made.append((segment, one))
            if isinstance(one, bytes):
                self.waiting_bytes += len(one)

    def take(self) -> Sound | Done | None:
        """Return what comes next, if it is there."""
        while self._made and not self._ready:
            segment, one = self._made.popleft()
            if isinstance(one, bytes):
                self.waiting_bytes -= len(one)
                segment.shift = self._pushed - segment.pushed
                segment.pushed += len(one) // BYTES_PER_SAMPLE
                self._encode(segment, one)
            elif isinstance(one, Volume):
                self._encoder()
                self._chain.set_volume(one.factor)
            elif one is Mark.PAUSE:
                self._send(segment, self._encoder().cut())
            else:
                self._end(segment)
        return self._ready.popleft() if self._ready else None

    def taken(self, given: Sound | Done) -> None:
        """Note that `given` is about to be sent: an interrupt cannot stop it any more."""
        utterances = given.segment.utterances
        assert utterances is not None, "what sounds is on the air"
        up_to = None  # all, since an encoder may hold the end
        if isinstance(given, Sound):
            self._taken += given.samples
            up_to = self._taken - given.segment.shift
        self._handing = given.segment, utterances.listener.take(up_to)

    def sent(self) -> float | None:
        """Note that the socket has what was taken last. Return by how many seconds it was late;
        None if there was no speech in it."""
        handing, self._handing = self._handing, None
        if handing is None or not handing[1]:
            return None
        segment, samples = handing
        assert segment.utterances is not None, "what sounds is on the air"
        now = time.monotonic()
        late = segment.utterances.sent(samples, now)
        if segment.trace is not None:
            segment.trace.sent(late, now)
        return late

    @property
    def seconds(self) -> float:
        """Seconds of sound taken so far."""
        return self._taken / SAMPLE_RATE

    def fill(self, segment: Segment) -> None:
        """Send a little silence, and as much more as the encoder needs to give something."""
        self._send(segment, self._encoder().cut())
        for _ in range(_MOST_SILENCES):
            self._encode(segment, _SILENCE)
            self._send(segment, self._encoder().cut())
            if self._ready:
                return

    def finish(self) -> None:
        """End the encoder: what a continuous one still has belongs to what sounded last."""
        packets, self._packets = self._packets, None
        if packets is not None:
            if self._last is not None:
                self._send(self._last, packets.finish())
            packets.drop()

    def drop(self) -> None:
        """Drop everything that was not taken. Idempotent."""
        if self._packets is not None:
            self._packets.drop()
        self._made.clear()
        self._ready.clear()
        self.waiting_bytes = 0

    def _encoder(self) -> Packets:
        if self._packets is None:
            self._chain = self._new_chain()
            self._packets = self.delivery.packets_in(self._audio, self._chain)
        return self._packets

    def _encode(self, segment: Segment, pcm: bytes) -> None:
        if not segment.sounds:
            segment.sounds, segment.begins = True, self._pushed / SAMPLE_RATE
        self._last = segment
        self._pushed += len(pcm) // BYTES_PER_SAMPLE
        encoder = self._encoder()
        if segment.trace is None:
            packets = encoder.push(pcm)
        else:
            with segment.trace.encoding():
                packets = encoder.push(pcm)
        self._send(segment, packets)

    def _send(self, segment: Segment, packets: list[Packet]) -> None:
        for data, samples in packets:
            self._ready.append(Sound(segment, data, samples))

    def _end(self, segment: Segment) -> None:
        lost = segment.utterances is not None and segment.utterances.failure is not None
        if self.delivery.fills and segment.wants_sound and not (segment.sounds or lost):
            self.fill(segment)
        if not self.delivery.continuous:
            self.finish()
        elif self._packets is not None:
            self._send(segment, self._packets.cut())
        self._ready.append(Done(segment))
