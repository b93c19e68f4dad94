"""Track: the sound of a speech on its way out, segments in a row, in the format that is wanted.

Sound is encoded when somebody takes it, and not before: so what is dropped was never encoded, and
of many speeches whose sound came together each encodes a packet at a time.
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
from realtime_tts.audio.stages import NO_STAGES, Chain
from realtime_tts.protocol.messages import SAMPLE_RATE
from realtime_tts.server.made import Made, Mark, Volume
from realtime_tts.server.utterances import Utterances
from realtime_tts.tracing.turn import TurnTrace

STALL_SECONDS = 2.5
"""After so long without sound some silence is sent: clients give up after three seconds."""
_SILENCE = bytes(SAMPLE_RATE // 10 * BYTES_PER_SAMPLE)  # a tenth of a second
_MOST_SILENCES = 10  # until an encoder gives something: the slowest, MP3 at 8 kHz, takes four


@dataclass(frozen=True, slots=True)
class Delivery:
    """How the sound of a speech is given out."""

    packets_in: Callable[[AudioFormat, Chain], Packets] = packets_in
    """Packets in the format of the settings. Raises RequestError if this server cannot make it."""
    continuous: bool = False
    """One encoder for all segments; else each is a file of its own."""
    fills: bool = False
    """Silence stands in for sound that is late or missing: some clients take that for a failure."""
    saved: bool = False
    """Made as fast as it is taken, where nobody who listens needs the engine: `lead_ms` counts from
    what was taken, not from what would be heard by now."""


@dataclass(slots=True, eq=False)
class Segment:
    """A piece of text that is spoken as one. `tag`, `flushed` and `told` are its owner's."""

    number: int
    """0 for the first of its speech."""
    tag: Any = None
    flushed: bool = False
    """The client asked for its end; else a pause ended it, or the end of all text."""
    told: bool = False
    """The client knows of it."""
    text_chars: int = 0
    charged: int = 0
    """Of them to its account: see `Ledger`."""
    wants_sound: bool = False
    """Where silence fills, it has some even if there is nothing to speak."""
    ended: bool = False
    """No more text comes."""
    sounds: bool = False
    begins: float = 0.0
    """Seconds of the speech's sound before it, once it sounds."""
    shift: int = 0
    """Samples of sound so far that are not its own speech: earlier segments, and silence."""
    pieces: list[str] = field(default_factory=list)  # of text, until it is on the air
    utterances: Utterances | None = None  # once it is on the air
    pushed: int = 0  # samples of its speech that were encoded
    trace: TurnTrace | None = None  # where turns are traced

    def add(self, text: str, charged: int) -> None:
        """More text came, of which so many characters were charged."""
        self.text_chars += len(text)
        self.charged += charged
        self.wants_sound = True
        if self.utterances is None:
            self.pieces.append(text)

    @property
    def samples(self) -> int:
        """Of its speech that were given out."""
        return 0 if self.utterances is None else self.utterances.stats().samples

    @property
    def text_tokens(self) -> int:
        """That the engine was given."""
        return 0 if self.utterances is None else self.utterances.text_tokens

    @property
    def reason(self) -> str:
        """Why it ended, as in `turn.done`."""
        return "complete" if self.utterances is None else self.utterances.reason


class Sound(NamedTuple):
    """A packet in the wanted format, with so many of the engine's samples (24 kHz) in it."""

    segment: Segment
    data: bytes
    samples: int


class Done(NamedTuple):
    """All sound of the segment came before this."""

    segment: Segment


class Track:
    """`add` what was made; `take` what is to be sent, and say when it is `taken` and `sent`, one
    after another. Raises RequestError if there is no encoder for the format. `new_chain` makes what
    the sound of each encoder goes through."""

    def __init__(
        self,
        delivery: Delivery,
        audio: AudioFormat,
        new_chain: Callable[[], Chain] = lambda: NO_STAGES,
    ) -> None:
        self.waiting_bytes = 0
        """Of PCM that nobody has taken."""
        self.delivery, self._audio, self._new_chain = delivery, audio, new_chain
        self._chain = new_chain()
        self._packets: Packets | None = delivery.packets_in(audio, self._chain)
        self._made: deque[tuple[Segment, bytes | Mark | Volume]] = deque()
        self._ready: deque[Sound | Done] = deque()
        self._pushed = 0  # samples that were encoded
        self._last: Segment | None = None  # that sounded
        self._taken = 0  # samples
        self.given = 0
        """Samples that were given out elsewhere."""
        self._given_elsewhere = 0  # of those, that will be added
        self._handing: tuple[Segment, int] | None = None  # speech in what was taken last

    def resume(self, given: int, made: int) -> None:
        """So many samples were given out elsewhere, and the next that are added come behind `made`
        of them: those that were given are left out."""
        self.given = self._pushed = self._taken = given
        self._given_elsewhere = given - made

    def __bool__(self) -> bool:
        """Whether there is something to take."""
        return bool(self._made or self._ready)

    def add(self, segment: Segment, made: Made) -> None:
        """Sound of the segment, or its end."""
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
        """What comes next, if it is there."""
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
        """It is about to be sent: an interrupt cannot stop it any more."""
        utterances = given.segment.utterances
        assert utterances is not None, "what sounds is on the air"
        up_to = None  # an encoder may have the last of it
        if isinstance(given, Sound):
            self._taken += given.samples
            up_to = self._taken - given.segment.shift
        self._handing = given.segment, utterances.listener.take(up_to)

    def sent(self) -> float | None:
        """The socket has what was taken last. Gives by how many seconds it was late; None if there
        was no speech in it."""
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
        """Of sound that was taken."""
        return self._taken / SAMPLE_RATE

    def fill(self, segment: Segment) -> None:
        """A little silence, and as much more as the encoder needs to give something."""
        self._send(segment, self._encoder().cut())
        for _ in range(_MOST_SILENCES):
            self._encode(segment, _SILENCE)
            self._send(segment, self._encoder().cut())
            if self._ready:
                return

    def finish(self) -> None:
        """Nothing follows: what a continuous encoder still has belongs to what sounded last."""
        packets, self._packets = self._packets, None
        if packets is not None:
            if self._last is not None:
                self._send(self._last, packets.finish())
            packets.drop()

    def drop(self) -> None:
        """Give up everything that was not taken. Idempotent."""
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
