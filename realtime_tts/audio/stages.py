"""Stages: what is done to the sound of a stream before it is in anybody's format.

A stage takes and gives whole samples (s16le, 24 kHz, mono). As many come out as went in, in
pieces or as a whole, bit for bit; it may hold some back until more comes. Stages follow one another
in a chain, and a stream that asks for none has an empty one.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from realtime_tts.audio.loudness import Loudness, VoiceLevels
from realtime_tts.audio.marking import Marking


class Stage(Protocol):
    """Feed with `push`, then `finish` once; one that is given up needs no call."""

    def push(self, pcm: bytes) -> bytes:
        """Take more of the stream; give what can now be told, maybe nothing."""

    def finish(self) -> bytes:
        """Give the rest."""


class Chain:
    """Stages in a row, used as one is."""

    def __init__(self, *stages: Stage) -> None:
        self._stages = stages

    def push(self, pcm: bytes) -> bytes:
        for stage in self._stages:
            pcm = stage.push(pcm)
        return pcm

    def finish(self) -> bytes:
        rest = b""
        for stage in self._stages:
            rest = stage.push(rest) + stage.finish()
        return rest


NO_STAGES = Chain()
"""Sound goes through as it is."""


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
        if self.marks:
            stages.append(Marking())
        return Chain(*stages)
