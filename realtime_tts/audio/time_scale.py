"""Changes the speed of sound and keeps its pitch.

WSOLA (Verhelst and Roelands, "An overlap-add technique based on waveform similarity for high
quality time-scale modification of speech", ICASSP 1993) that copies for as long as it can. Blocks
of the output are copied from the input, sample by sample, until the output has drifted from its
position in time; then it jumps, in a crossfade, to where the sound is most similar, which in a
voice is some periods of the pitch away. It jumps early where both sides are nearly equal, and late
where they are not: so a transient, which is like nothing near it, is neither heard twice nor left
out.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from realtime_tts.audio.speed import FASTEST, LOOKAHEAD, SLOWEST, Speed

_BLOCK = 240
"""Samples of a block at 24 kHz (10 ms): the length of a crossfade."""
_AHEAD, _BEHIND = LOOKAHEAD - _BLOCK, 360
"""Samples that the output may be ahead of or behind its position in time; those ahead must be
here."""
_PAST = 360
"""Samples before a jump that are compared, besides those of the crossfade."""
_SHORTEST = 60  # samples of a jump: a period of 400 Hz
_COARSE = 4  # samples that are added up for the first search
_ALIKE, _LESS_ALIKE = 0.97, 0.7
"""How similar both sides of a jump must be: at first, and when it becomes urgent."""
_SOON, _LATEST = 0.7, 2.0
"""The urgency to jump where nothing is similar, and where a burst would be repeated or lost."""
_CELL = 60  # samples
_BURST = 20.0  # times the usual power
_QUIET = 8.0**2
"""Mean square of sound (16 bits) so quiet that it counts as similar to anything."""

Wave = NDArray[np.float64]
"""Samples as 16-bit numbers: sums of their products are exact, in whatever order they are added."""


class Place(NamedTuple):
    """The state of an output between two blocks: it has `given` samples so far, and goes on with
    sample `next` of the input."""

    given: int = 0
    next: int = 0

    def is_of(self, speed: Speed) -> bool:
        """Return whether an output at this speed may be in this state."""
        return -2 * _BEHIND <= self.next - int(self.given * speed) <= 2 * _AHEAD


class _Jump(NamedTuple):
    """The output goes on at sample `to` of the input, after a crossfade of `fade` samples."""

    to: int
    fade: int


class TimeScale:
    """Changes the speed of one utterance. Feed it with `push`, then `finish` once.

    Takes and returns whole samples (s16le, 24 kHz, mono). Pieces give what the whole gives, bit for
    bit. The output is in time with the input within 20 ms, and at most `Speed.lookahead` samples
    are held (7 ms more for a moment, where a burst must not be repeated); in all, `Speed.played` of
    the samples received are returned.

    `place`: the state of an output to go on with; the first sample pushed is number `begins` of the
    input, and the output goes on unchanged if that is at least `HISTORY` before the place.
    """

    HISTORY = 1_200
    """Samples of past input that later output depends on."""

    def __init__(self, speed: Speed, place: Place | None = None, begins: int = 0) -> None:
        assert SLOWEST <= speed <= FASTEST, speed
        place = place or Place()
        self._speed = speed
        self._given, self._next = place
        # Before the beginning there was silence.
        self._input: Wave = np.zeros(self.HISTORY)
        self._start = begins - self.HISTORY  # number of the first sample of `_input`
        self._received = begins

    @property
    def place(self) -> Place:
        return Place(self._given, self._next)

    def push(self, pcm: bytes) -> bytes:
        """Take more of the input; return the output that is ready, maybe nothing."""
        self._take(pcm)
        blocks = []
        while (block := self._block()) is not None:
            blocks.append(block)
        self._forget()
        return _pcm(blocks)

    def finish(self) -> bytes:
        """Return the rest: its last sample is the input's last. None is left of an input that ends
        before the place that its output went on from."""
        length = max(0, self._speed.played(self._received) - self._given)
        start = self._received - length
        self._given, tail = self._given + length, self._at(start, length).copy()
        fade = min(_BLOCK, length)
        if start != self._next and fade:
            onward = np.zeros(fade)
            there = self._at(self._next, min(fade, self._received - self._next))
            onward[: len(there)] = there
            tail[:fade] = onward + _fade(fade)[:fade] * (tail[:fade] - onward)
        self._next = self._received
        return _pcm([tail])

    def _take(self, pcm: bytes) -> None:
        more = np.frombuffer(pcm, dtype="<i2")
        self._received += len(more)
        self._input = np.concatenate((self._input, more))

    def _forget(self) -> None:
        old = min(self._next - self.HISTORY - self._start, len(self._input))
        if old > 0:
            self._input, self._start = self._input[old:], self._start + old

    def _at(self, sample: int, length: int) -> Wave:
        first = sample - self._start
        assert 0 <= first and first + length <= len(self._input), (first, length)
        return self._input[first : first + length]

    def _block(self) -> Wave | None:
        """Return the next block of the output; None if not enough of the input is here."""
        due = int(self._given * self._speed)  # its position in time
        drift = self._next - due
        drifts_by = round(_BLOCK - _BLOCK * self._speed)  # with each block that is copied
        jumps = drift * drifts_by > 0 and abs(drift) >= _SHORTEST
        # Nor is more returned than there is in all, if no more arrives.
        needed = max(self._next + _BLOCK, int((self._given + _BLOCK) * self._speed) + 1)
        if jumps:
            needed = max(needed, due + _AHEAD + _BLOCK)
        if needed > self._received:
            return None
        block = self._at(self._next, _BLOCK)
        jump = _Jump(self._next, _BLOCK)
        if jumps:
            jump = self._back(due, drifts_by) if drift > 0 else self._forth(due, drifts_by)
        if jump.to != self._next:
            block = block + _fade(jump.fade) * (self._at(jump.to, _BLOCK) - block)
        self._given, self._next = self._given + _BLOCK, jump.to + _BLOCK
        return block

    def _back(self, due: int, drifts_by: int) -> _Jump:
        """Find where a slower output goes on, which is ahead of its time: something is repeated."""
        here = self._next
        first, last = due - _BEHIND, min(here - _SHORTEST, due + _AHEAD - drifts_by)
        urgency = (here - due) / (_AHEAD - drifts_by)
        to, alike = self._most_alike(here, first, last)
        if alike >= _wanted(urgency):
            return _Jump(to, _BLOCK)
        burst = self._burst(first, max(due + _AHEAD, here) + _BLOCK)
        if burst is None:
            return _Jump(to if urgency >= _SOON else here, _BLOCK)
        if burst < here + _BLOCK:  # it was played: what is repeated begins behind it
            first = max(first, burst + 2 * _CELL)
            if first > last:
                return _Jump(to if urgency > _LATEST else here, _BLOCK)
            to, _ = self._most_alike(here, first, last)
        return _Jump(to, _BLOCK)

    def _forth(self, due: int, drifts_by: int) -> _Jump:
        """Find where a faster output goes on, which is behind its time: something is left out."""
        here = self._next
        first, last = max(here + _SHORTEST, due - _BEHIND - drifts_by), due + _AHEAD
        urgency = (due - here) / (_BEHIND + drifts_by)
        to, alike = self._most_alike(here, first, last)
        if alike >= _wanted(urgency):
            return _Jump(to, _BLOCK)
        burst = self._burst(here, last + _BLOCK)
        if burst is None:
            return _Jump(to if urgency >= _SOON else here, _BLOCK)
        if burst - _BLOCK >= first:
            return _Jump(self._most_alike(here, first, min(last, burst - _BLOCK))[0], _BLOCK)
        return _Jump(to if urgency > _LATEST else here, _BLOCK)

    def _burst(self, first: int, end: int) -> int | None:
        """Return where something short and loud begins in this stretch, if there is anything."""
        cells = self._at(first, (end - first) // _CELL * _CELL).reshape(-1, _CELL)
        power = np.einsum("cn,cn->c", cells, cells) / _CELL
        loudest = int(np.argmax(power))
        is_burst = power[loudest] > _BURST * (float(np.median(power)) + _QUIET)
        return first + max(0, loudest - 1) * _CELL if is_burst else None

    def _most_alike(self, here: int, first: int, last: int) -> tuple[int, float]:
        """Return the sample from `first` to `last` where the sound is most similar to that at
        `here`, and the similarity: 1 is the same, 0 is something else."""
        length = _PAST + _BLOCK
        wanted = self._at(here - _PAST, length)
        there = self._at(first - _PAST, last - first + length)
        found = first + _COARSE * _best(_coarse(wanted), _coarse(there))[0]
        low, high = max(first, found - _COARSE + 1), min(last, found + _COARSE - 1)
        best, alike = _best(wanted, self._at(low - _PAST, high - low + length))
        return low + best, alike


def _wanted(urgency: float) -> float:
    """Return how similar both sides of a jump must be to take it."""
    return _ALIKE - (_ALIKE - _LESS_ALIKE) * min(urgency, 1.0)


@cache
def _fade(length: int) -> Wave:
    """Return the share of the sound behind a jump in each sample of a block."""
    place = (np.arange(_BLOCK) + 0.5) / length
    weights: Wave = 0.5 - 0.5 * np.cos(np.pi * np.minimum(place, 1.0))
    return weights


def _best(wanted: Wave, there: Wave) -> tuple[int, float]:
    """Return where in `there` a piece is most similar to `wanted`, and the similarity: the squared
    difference is least, as a share of what both have."""
    products = np.correlate(there, wanted)
    squares = np.concatenate(((0.0,), np.cumsum(there * there)))
    quiet = _QUIET * len(wanted)
    both = squares[len(wanted) :] - squares[: -len(wanted)] + (np.dot(wanted, wanted) + quiet)
    alike = (2 * products + quiet) / both
    best = int(np.argmax(alike))
    return best, float(alike[best])


def _coarse(samples: Wave) -> Wave:
    whole: Wave = samples[: len(samples) // _COARSE * _COARSE].reshape(-1, _COARSE).sum(1)
    return whole


def _pcm(blocks: list[Wave]) -> bytes:
    if not blocks:
        return b""
    samples = np.concatenate(blocks)
    return np.rint(samples).astype("<i2").tobytes()
