"""What was seen of one turn, and the figures that follow from it. Times are in seconds."""

from __future__ import annotations

import sys
from array import array
from dataclasses import dataclass, field

from realtime_tts.client import TurnResult, Word
from tts_scheduler.playback import Playback
from tts_scheduler.report import Trace, TurnReport, measure

AUDIBLE_DBFS = -45.0
_THRESHOLD = round(32_768 * 10 ** (AUDIBLE_DBFS / 20))


class Onset:
    """Finds the first sample of a turn that can be heard.

    A model may begin with silence, which makes the first packet fast and the listener wait. Costs
    nothing once the onset is found.
    """

    def __init__(self) -> None:
        self.sample: int | None = None
        """Position of the first sample above -45 dBFS in the turn; None while there is none."""
        self._seen = 0

    def feed(self, packet: bytes) -> None:
        """Look at the next packet (s16le)."""
        if self.sample is not None:
            return
        samples = array("h", packet)
        if sys.byteorder == "big":
            samples.byteswap()
        # max and min look at 2,048 samples in 30 us; only one packet a turn is looked at closer.
        if samples and (max(samples) > _THRESHOLD or min(samples) < -_THRESHOLD):
            offset = next(i for i, sample in enumerate(samples) if abs(sample) > _THRESHOLD)
            self.sample = self._seen + offset
        self._seen += len(samples)


SAMPLE_RATE = 24_000


@dataclass(slots=True)
class Observation:
    """One turn, seen from the client.

    `error`: the code of what ended it early; `retry_after`: seconds to wait, if it was refused for
    want of capacity. `interrupt_seconds`: from the interrupt to the server's answer, after which
    not a byte of the turn comes. `last_byte_seconds`: from the interrupt to the turn's last byte, 0
    if none came after it; None if the turn was not interrupted while it was on the air.
    `start_lag`: by how much the load generator itself began the turn too late, where it was due.
    `sound`: all that came, if it is to be kept; `words`: the server's, if the session has them.
    """

    text_chars: int
    trace: Trace
    onset: Onset = field(default_factory=Onset)
    result: TurnResult | None = None
    layout: str | None = None
    error: str | None = None
    retry_after: float = 0.0
    interrupt_seconds: float | None = None
    last_byte_seconds: float | None = None
    start_lag: float | None = None
    sound: bytearray | None = None
    words: tuple[Word, ...] = ()

    @classmethod
    def failed(cls, text_chars: int, code: str) -> Observation:
        """Make the observation of a turn that never began."""
        return cls(text_chars, Trace(asked_at=0.0), error=code)

    def packet(self, data: bytes, at: float) -> None:
        """Note a packet that arrived at time `at`."""
        self.trace.packet(at, len(data) // 2)
        self.onset.feed(data)
        if self.sound is not None:
            self.sound += data

    @property
    def complete(self) -> bool:
        """The whole text was spoken, and its speech can be counted."""
        return self.error is None and self.interrupt_seconds is None and bool(self.trace.packets)

    @property
    def report(self) -> TurnReport:
        """Time to first audio, underruns and so on, as `tts_scheduler.report` defines them."""
        if self.result is not None:
            self.trace.reason = self.result.reason
            self.trace.held_seconds = self.result.held_ms / 1000
        return measure(self.trace, SAMPLE_RATE)

    @property
    def audible_ttfa(self) -> float | None:
        """Seconds from the first text delta to the first sample above -45 dBFS at the ear; None if
        there was none.

        The listener plays from the first packet on; the sample sounds then, or when its own packet
        comes, if that is later.
        """
        if self.onset.sample is None:
            return None
        first_at = self.trace.packets[0][0]
        before = 0
        for at, samples in self.trace.packets:
            if self.onset.sample < before + samples:
                in_packet = (self.onset.sample - before) / SAMPLE_RATE
                sounds_at = max(first_at + self.onset.sample / SAMPLE_RATE, at + in_packet)
                return sounds_at - self.trace.asked_at
            before += samples
        return None

    @property
    def worst_gap(self) -> float:
        """The longest silence that late packets put into the speech."""
        playback = Playback(SAMPLE_RATE)
        return max((playback.sent(samples, at) for at, samples in self.trace.packets), default=0.0)

    @property
    def heard_until(self) -> float:
        """When the listener has heard everything that came."""
        playback = Playback(SAMPLE_RATE)
        for at, samples in self.trace.packets:
            playback.sent(samples, at)
        return playback.deadline() or self.trace.asked_at

    @property
    def speed(self) -> float | None:
        """Seconds from the first text to the last packet, per second of audio.

        The stream's own real-time factor, if the text came whole and nothing held the server back.
        """
        audio = sum(samples for _, samples in self.trace.packets) / SAMPLE_RATE
        return (self.trace.packets[-1][0] - self.trace.asked_at) / audio if audio else None
