"""Stages change the sound of a stream before it is converted to a client's format.

A stage takes and returns whole samples (s16le, 24 kHz, mono). As many come out as went in, in
pieces or as a whole, bit for bit; it may hold some back until more arrive. Stages follow one
another in a chain, and a stream that asks for none has an empty one.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from realtime_tts.audio.gain import Gain
from realtime_tts.audio.loudness import Loudness, VoiceLevels
from realtime_tts.audio.marking import Marking
from realtime_tts.audio.pcm import BYTES_PER_SAMPLE


class Stage(Protocol):
    """One change of sound. Feed with `push`, then `finish` once; dropping it needs no call."""

    def push(self, pcm: bytes) -> bytes:
        """Take more of the stream; return what is ready, maybe nothing."""

    def finish(self) -> bytes:
        """Return the rest."""


class Chain:
    """Stages in a row, used like a single one. `gain`: the one that changes the volume."""

    def __init__(self, *stages: Stage, gain: Gain | None = None) -> None:
        self._stages = stages
        self._gain = gain
        self._received = 0  # samples

    def set_volume(self, factor: float) -> None:
        """Multiply the sound that is pushed from now on by `factor`."""
        if self._gain is not None and factor != self._gain.last:
            self._gain.change(self._received, factor)

    def push(self, pcm: bytes) -> bytes:
        self._received += len(pcm) // BYTES_PER_SAMPLE
        for stage in self._stages:
            pcm = stage.push(pcm)
        return pcm

    def finish(self) -> bytes:
        rest = b""
        for stage in self._stages:
            rest = stage.push(rest) + stage.finish()
        return rest


NO_STAGES = Chain()
"""A chain that leaves sound as it is, whatever volume is set."""


class Stages:
    """Makes the chains of a server's streams, and keeps what one stream learns for the next."""

    def __init__(self) -> None:
        self.marks = False
        """Whether all sound is marked as synthetic."""
        self._levels = VoiceLevels()

    def chain(self, voice: Hashable, *, loudness: bool) -> Chain:
        """Make the chain for one stream of a voice."""
        stages: list[Stage] = []
        if loudness:
            stages.append(Loudness(self._levels.of(voice)))
        stages.append(gain := Gain())
        if self.marks:
            stages.append(Marking())
        return Chain(*stages, gain=gain)
