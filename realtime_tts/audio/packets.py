"""Packets of one turn in the format its session asked for, each with the speech it holds.

A packet is its bytes and the number of the engine's samples (24 kHz) in it: positions, leads and
interrupts count in those, whatever the format. `packets_in` chooses one of two ways to cut:

- raw samples by duration: 20 ms of µ-law are 160 bytes;
- formats with a container: what the encoder returns at a time is a packet.

For other APIs, `FramedPackets` cuts raw samples like formats with a container.
"""

from __future__ import annotations

import abc

from realtime_tts.audio.encoders import Encoder
from realtime_tts.audio.formats import ENGINE_RATE, PACKET_BYTES, AudioFormat
from realtime_tts.audio.pcm import BYTES_PER_SAMPLE
from realtime_tts.audio.stages import NO_STAGES, Chain

Packet = tuple[bytes, int]
"""Bytes to send, and the number of the engine's samples that they hold."""


def packets_in(audio_format: AudioFormat, chain: Chain = NO_STAGES) -> Packets:
    """Make the packets of one turn, whose sound passes the `chain` first. Raises RequestError if
    this installation lacks what the format needs."""
    raw = audio_format.container == "raw"
    return (RawPackets if raw else EncodedPackets)(audio_format, chain)


class PcmFramer:
    """Cuts one turn's PCM into packets of at most `packet_bytes`. Feed with `push`, then `cut`.

    The packet rule: the first packet leaves at once with whatever there is, every other one is
    exactly full, the last one holds the rest. So a listener hears the start a few milliseconds
    earlier, and afterwards the number of messages depends on the seconds of speech alone.

    `sample_bytes`: bytes of one sample, which is never cut. An interrupted turn needs no call: drop
    the framer, and what it holds is never sent.
    """

    def __init__(
        self, packet_bytes: int = PACKET_BYTES, sample_bytes: int = BYTES_PER_SAMPLE
    ) -> None:
        assert packet_bytes > 0 and packet_bytes % sample_bytes == 0, packet_bytes
        self._packet_bytes = packet_bytes
        self._sample_bytes = sample_bytes
        self._pending = bytearray()
        self._started = False

    def push(self, pcm: bytes) -> list[bytes]:
        """Take whole samples; return the packets that are due."""
        assert len(pcm) % self._sample_bytes == 0, f"half a sample: {len(pcm)} bytes"
        self._pending += pcm
        packets = []
        while len(self._pending) >= self._packet_bytes:
            packets.append(self._packet())
        if not self._started and not packets and self._pending:
            packets.append(self._packet())
        self._started = self._started or bool(packets)
        return packets

    def cut(self) -> list[bytes]:
        """Return the last packet, if anything is left. Later sound begins like a turn."""
        self._started = False
        return [self._packet()] if self._pending else []

    def _packet(self) -> bytes:
        packet = bytes(self._pending[: self._packet_bytes])
        del self._pending[: self._packet_bytes]
        return packet


class Packets(abc.ABC):
    """The packets of one turn. Feed with `push`, then `finish`; or `drop` what is held, at any
    time.

    Together the packets count exactly the samples pushed, unless these are too few to make one at
    another rate.
    """

    def __init__(self, audio_format: AudioFormat, chain: Chain = NO_STAGES) -> None:
        self._encoder = Encoder(audio_format, chain)
        self._given = 0  # the engine's samples in the packets returned

    @abc.abstractmethod
    def push(self, pcm: bytes) -> list[Packet]:
        """Take whole samples (s16le, 24 kHz); return the packets that are due."""

    def cut(self) -> list[Packet]:
        """Return what is held, where packets may be cut. Later sound begins like a turn's."""
        return []

    @abc.abstractmethod
    def finish(self) -> list[Packet]:
        """Return the last packets, if anything is left."""

    def drop(self) -> None:
        """Drop what is held: none of it will be sent. Idempotent, also after `finish`."""
        self._encoder.close()


class RawPackets(Packets):
    """Packets of raw samples, all of one duration except the first and last."""

    def __init__(self, audio_format: AudioFormat, chain: Chain = NO_STAGES) -> None:
        packet_bytes, sample_bytes = audio_format.packet_bytes, audio_format.sample_bytes
        assert packet_bytes is not None and sample_bytes is not None
        super().__init__(audio_format, chain)
        self._framer = PcmFramer(packet_bytes, sample_bytes)
        self._bytes_per_second = audio_format.sample_rate * sample_bytes
        self._given_bytes = 0

    def push(self, pcm: bytes) -> list[Packet]:
        return self._counted(self._framer.push(self._encoder.encode(pcm)))

    def cut(self) -> list[Packet]:
        return self._counted(self._framer.cut())  # what the resampler holds follows later

    def finish(self) -> list[Packet]:
        packets = self._counted(self._framer.push(self._encoder.finish()) + self._framer.cut())
        if packets:  # rounding ends here
            data, samples = packets[-1]
            missing = self._encoder.given_samples - self._given
            packets[-1] = data, samples + missing
        return packets

    def _counted(self, packets: list[bytes]) -> list[Packet]:
        counted = []
        for data in packets:
            self._given_bytes += len(data)
            given = self._given_bytes * ENGINE_RATE // self._bytes_per_second
            counted.append((data, given - self._given))
            self._given = given
        return counted


class EncodedPackets(Packets):
    """Packets as the encoder makes them. Bytes without sound (a header, or the silence with which
    MP3 begins) wait for bytes with sound, or playback would seem to have begun."""

    def __init__(self, audio_format: AudioFormat, chain: Chain = NO_STAGES) -> None:
        super().__init__(audio_format, chain)
        self._begun = False
        self._waiting = b""

    def push(self, pcm: bytes) -> list[Packet]:
        self._begun = self._begun or bool(pcm)
        self._waiting += self._encoder.encode(pcm)
        return self._packet() if self._encoder.given_samples > self._given else []

    def finish(self) -> list[Packet]:
        """Return the last packets. A turn without sound has none: it needs no header either."""
        if not self._begun:
            self._encoder.close()
            return []
        self._waiting += self._encoder.finish()
        return self._packet()

    def drop(self) -> None:
        self._waiting = b""
        super().drop()

    def _packet(self) -> list[Packet]:
        if not self._waiting:
            return []
        given = self._encoder.given_samples
        data, samples = self._waiting, given - self._given
        self._waiting, self._given = b"", given
        return [(data, samples)]


class FramedPackets(EncodedPackets):
    """Packets of speech that is first cut like the engine's own format, so that their number
    depends on the seconds of speech alone, not on how it arrived."""

    def __init__(self, audio_format: AudioFormat, chain: Chain = NO_STAGES) -> None:
        super().__init__(audio_format, chain)
        self._framer = PcmFramer()

    def push(self, pcm: bytes) -> list[Packet]:
        return self._each(self._framer.push(pcm))

    def cut(self) -> list[Packet]:
        return self._each(self._framer.cut())

    def finish(self) -> list[Packet]:
        return [*self.cut(), *super().finish()]

    def _each(self, pieces: list[bytes]) -> list[Packet]:
        return [packet for piece in pieces for packet in super(FramedPackets, self).push(piece)]
