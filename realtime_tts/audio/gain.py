"""Gain: parts of a stream made louder or softer, as the markup of its text asks."""

from __future__ import annotations

import numpy as np

from realtime_tts.audio.formats import ENGINE_RATE
from realtime_tts.audio.limiter import Limiter, Wave
from realtime_tts.audio.loudness import HIGHEST_PEAK
from realtime_tts.audio.pcm import BYTES_PER_SAMPLE, from_s16le, to_s16le

SOFTEST, LOUDEST = 0.0, 4.0
"""The range of factors: silence, to four times as loud (12 dB)."""
_RAMP = ENGINE_RATE // 200
"""Samples (5 ms) over which the gain goes from one factor to the next."""


class Gain:
    """The stage that changes the volume. Feed with `push`, then `finish` once; `change` sets the
    factor of later sound.

    Pieces give what the whole gives, bit for bit. A factor that is set before the first sample
    holds from there; later ones are reached in a ramp, or a click would be heard. Until sound is
    made louder, all of it passes without delay; from then on peaks are limited, and
    `limiter.HELD_SAMPLES` may wait.
    """

    def __init__(self) -> None:
        self.last: float | None = None
        """The factor of the last change, if there was any."""
        self._received = 0  # samples
        self._from, self._to, self._changed_at = 1.0, 1.0, -_RAMP
        self._changed = False
        self._changes: list[tuple[int, float]] = []  # changes still to come, by their sample
        self._limiter: Limiter | None = None

    def change(self, at: int, factor: float) -> None:
        """Scale sound by `factor` from sample `at` of the stream on, not pushed so far."""
        self.last = factor
        self._changes.append((at, factor))

    def push(self, pcm: bytes) -> bytes:
        """Take more of the stream; return what is ready, maybe nothing."""
        count = len(pcm) // BYTES_PER_SAMPLE
        end, out = self._received + count, []
        while self._changes and self._changes[0][0] < end:
            at, factor = self._changes.pop(0)
            size = (at - self._received) * BYTES_PER_SAMPLE
            out.append(self._scaled(pcm[:size]))
            pcm = pcm[size:]
            self._turn(at, factor)
            if factor > 1.0 and self._limiter is None:
                self._limiter = Limiter(HIGHEST_PEAK)
        out.append(self._scaled(pcm))
        return b"".join(out)

    def finish(self) -> bytes:
        """Return the rest."""
        return b"" if self._limiter is None else to_s16le(self._limiter.finish())

    def _turn(self, at: int, factor: float) -> None:
        """Let a change take effect at the sample that comes next."""
        if at == 0 and not self._changed:  # nothing was heard at another volume
            self._to = factor
        elif factor != self._to:
            self._from, self._to, self._changed_at = self._to, factor, at
        self._changed = True

    def _scaled(self, pcm: bytes) -> bytes:
        """Scale sound that has no change of the factor in it."""
        before = self._received
        self._received += len(pcm) // BYTES_PER_SAMPLE
        changing = before < self._changed_at + _RAMP
        plain = self._to == 1.0 and not changing
        if not pcm or (plain and self._limiter is None):
            return pcm
        samples = from_s16le(pcm)
        if not plain:
            samples = samples * self._factors(before, len(samples))
        return to_s16le(samples if self._limiter is None else self._limiter.push(samples))

    def _factors(self, first: int, count: int) -> Wave:
        """Return the factors of `count` samples, beginning with sample `first` of the stream."""
        done = (np.arange(first, first + count) - self._changed_at + 1) / _RAMP
        factors = self._from + (self._to - self._from) * np.minimum(done, 1.0)
        line: Wave = factors.astype(np.float32)
        return line
