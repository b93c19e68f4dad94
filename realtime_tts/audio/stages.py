"""Stages: what is done to the sound of a stream before it is in anybody's format.

A stage takes and gives whole samples (s16le, 24 kHz, mono). As many come out as went in, in
pieces or as a whole, bit for bit; it may hold some back until more comes. Stages follow one another
in a chain, and a stream that asks for none has an empty one.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from realtime_tts.audio.gain import Gain
from realtime_tts.audio.loudness import Loudness, VoiceLevels
from realtime_tts.audio.marking import Marking
from realtime_tts.audio.pcm import BYTES_PER_SAMPLE


class Stage(Protocol):
    """Feed with `push`, then `finish` once; one that is given up needs no call."""

    def push(self, pcm: bytes) -> bytes:
        """Take more of the stream; give what can now be told, maybe nothing."""

    def finish(self) -> bytes:
        """Give the rest."""


class Chain:
    """Stages in a row, used as one is. `gain`: the one of them that changes the volume."""

    def __init__(self, *stages: Stage, gain: Gain | None = None) -> None:
        self._stages = stages
        self._gain = gain
        self._came = 0  # samples

    def set_volume(self, factor: float) -> None:
        """What is pushed from now on is to be so many times as loud."""
        if self._gain is not None and factor != self._gain.last:
            self._gain.change(self._came, factor)

    def push(self, pcm: bytes) -> bytes:
        self._came += len(pcm) // BYTES_PER_SAMPLE
        for stage in self._stages:
            pcm = stage.push(pcm)
        return pcm

    def finish(self) -> bytes:
        rest = b""
        for stage in self._stages:
            rest = stage.push(rest) + stage.finish()
        return rest


NO_STAGES = Chain()
"""Sound goes through as it is, whatever its volume is said to be."""


class Stages:
    """Makes the chain of each stream of a server, and keeps what one stream leaves to the next."""

    def __init__(self) -> None:
        self.marks = False
        """Whether all sound is marked as synthetic."""
        self._levels = VoiceLevels()

    def chain(self, voice: Hashable, *, loudness: bool) -> Chain:
        """For one stream of a voice."""
        stages: list[Stage] = []
        if loudness:
            stages.append(Loudness(self._levels.of(voice)))
        stages.append(gain := Gain())
        if self.marks:
            stages.append(Marking())
        return Chain(*stages, gain=gain)
