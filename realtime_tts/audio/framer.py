"""PcmFramer: PCM of one turn in, packets out.

The packet rule: the first packet leaves at once with whatever there is, every other one is exactly
full, the last one holds the rest. So a listener hears the start a few milliseconds earlier, and
afterwards the number of messages depends on the seconds of speech alone.
"""

from __future__ import annotations

from realtime_tts.audio.formats import PACKET_BYTES
from realtime_tts.audio.pcm import BYTES_PER_SAMPLE


class PcmFramer:
    """Cuts one turn's PCM into packets of at most `packet_bytes`. Feed with `push`, then `cut`.

    `sample_bytes`: of one sample, which is never cut.

    A turn that is interrupted needs no call: drop the framer, and what it holds is never sent.
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
        """Take whole samples; give the packets that are due."""
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
        """The last packet, if anything is left; what is pushed after it begins like a turn."""
        self._started = False
        return [self._packet()] if self._pending else []

    def _packet(self) -> bytes:
        packet = bytes(self._pending[: self._packet_bytes])
        del self._pending[: self._packet_bytes]
        return packet
