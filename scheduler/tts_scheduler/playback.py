"""Playback: a model of the listener's buffer, kept from what was sent and when.

The listener starts when the first packet leaves (or when the previous turn has been heard, if that
is later) and plays without pause until nothing is left. The listener's reports correct the model.
"""

from __future__ import annotations

SAMPLE_RATE = 24_000
PACKET_SAMPLES = 2_048
"""Samples of a full packet: 85 ms."""
FRAME_SAMPLES = 1_920
"""Samples of a codec frame: 80 ms."""
FRAME_SECONDS = FRAME_SAMPLES / SAMPLE_RATE


class Playback:
    """What one listener has been sent of one utterance, and when that will run out.

    There are two ways to feed it, not to be mixed on one object:

    - `sent(samples, now)` for a caller that sees packets leave (server, bench);
    - `feed(samples, now)` and `end(now)` for a caller that sees samples leave the codec. Packets
      are cut here as the framer cuts them: the first leaves at once with the samples there are,
      later ones only when they are full, and the rest at the end.

    All three return the lateness: by how many seconds a packet left after its playback deadline
    (0.0: in time).
    """

    def __init__(
        self,
        sample_rate: int = SAMPLE_RATE,
        packet_samples: int = PACKET_SAMPLES,
        listener_free_at: float | None = None,
        lookahead: int = 0,
    ) -> None:
        """`listener_free_at`: when the listener has heard the previous turn. `lookahead`: how many
        of the samples fed are held back until more come, or the end."""
        self.sample_rate = sample_rate
        self.packet_samples = packet_samples
        self.first_sent_at: float | None = None
        self.packets = 0
        """Number of packets sent."""
        self.sent_samples = 0
        self.unsent_samples = -lookahead
        """Samples fed that wait for their packet to be full; negative before `lookahead` came."""
        self.underruns = 0
        """Number of packets, after the first, that left after their playback deadline."""
        self.late_seconds = 0.0
        """Total silence that the listener heard in the middle of speech, in seconds."""
        self._lookahead = lookahead
        self._played = 0.0
        self.runs_out_at = listener_free_at
        """When the listener runs out of audio: the next packet must leave by then. Before the first
        packet, this is when the previous turn has been heard; None if there is none."""

    @classmethod
    def at_speed(
        cls, speed: float, listener_free_at: float | None = None, lookahead: int = 0
    ) -> Playback:
        """Return a `Playback` that is fed samples before their speed is changed by `speed`. Seconds
        are the listener's."""
        rate, size = round(SAMPLE_RATE * speed), round(PACKET_SAMPLES * speed)
        return cls(rate, size, listener_free_at, lookahead)

    def resume(self, samples: int, unsent: int, now: float) -> None:
        """Continue an utterance of which `samples` were fed elsewhere, the last `unsent` of which
        wait for their packet to be full. `listener_free_at` is when the listener has heard the
        others."""
        assert self.runs_out_at is not None, "a listener on air runs out of audio at some time"
        self.first_sent_at = now
        self.sent_samples, self.unsent_samples = samples - self._lookahead - unsent, unsent

    def sent(self, samples: int, now: float) -> float:
        """Record a packet that left; return its lateness."""
        seconds = samples / self.sample_rate
        self.packets += 1
        self.sent_samples += samples
        runs_out_at = self.runs_out_at
        if self.first_sent_at is None or runs_out_at is None:
            self.first_sent_at = now
            starts_at = now if runs_out_at is None or runs_out_at < now else runs_out_at
            self.runs_out_at = starts_at + seconds
            return 0.0
        late = now - runs_out_at
        if late <= 0.0:
            self.runs_out_at = runs_out_at + seconds
            return 0.0
        self.underruns += 1
        self.late_seconds += late
        # The gap is over: playing resumes with this packet.
        self.runs_out_at = now + seconds
        return late

    def feed(self, samples: int, now: float) -> float:
        """Record samples that left the codec; return the lateness of the packets they fill."""
        self.unsent_samples += samples
        late = 0.0
        if self.first_sent_at is None and self.unsent_samples > 0:
            late += self._send(min(self.unsent_samples, self.packet_samples), now)
        while self.unsent_samples >= self.packet_samples:
            late += self._send(self.packet_samples, now)
        return late

    def end(self, now: float) -> float:
        """The speech is over: send the rest as a short packet, and return its lateness."""
        self.unsent_samples += self._lookahead
        self._lookahead = 0
        return self._send(self.unsent_samples, now) if self.unsent_samples else 0.0

    def played(self, seconds: float, now: float) -> None:
        """Correct the model by the listener's report that `seconds` were played so far.

        Reports of less than an earlier one, and from before the first packet, are ignored; more
        than was sent counts as all of it. A report that took a round trip to arrive makes the
        deadline late by that round trip: `SchedulerConfig.reserve` has to cover it.
        """
        if self.first_sent_at is None or seconds < self._played:
            return
        self._played = min(seconds, self.sent_seconds)
        self.runs_out_at = now + self.sent_seconds - self._played

    @property
    def on_air(self) -> bool:
        """Whether a packet was sent."""
        return self.first_sent_at is not None

    @property
    def fed_samples(self) -> int:
        """Number of samples that left the codec so far."""
        return self.sent_samples + self.unsent_samples + self._lookahead

    @property
    def sent_seconds(self) -> float:
        """Seconds of audio sent."""
        return self.sent_samples / self.sample_rate

    def lead(self, now: float) -> float:
        """Return the seconds of audio that the listener still has to hear; 0.0 in a gap."""
        deadline = self.runs_out_at
        return 0.0 if deadline is None or deadline < now else deadline - now

    def _send(self, samples: int, now: float) -> float:
        self.unsent_samples -= samples
        return self.sent(samples, now)
