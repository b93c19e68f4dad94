"""What an utterance has made: PCM, and marks between its pieces."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple


class Mark(Enum):
    """A mark between pieces of PCM."""

    PAUSE = auto()
    """A pause: what an encoder holds leaves before it, and its packets may be cut there."""
    END = auto()
    """The end of the segment's sound."""


class Volume(NamedTuple):
    """The volume of the sound that follows, as a factor of the voice's own."""

    factor: float


Made = list[bytes | Mark | Volume]
"""Sound that was made (s16le, 24 kHz, mono), in order."""

_ENOUGH = 2_880
"""Samples (120 ms) that a turn begins with while the engine has no text for more: the next word
must come before they have been played."""


class FirstSound:
    """Holds a turn's sound back until there is enough to begin with."""

    def __init__(self) -> None:
        self._held: Made | None = []

    @property
    def waits(self) -> bool:
        """Whether nothing was given yet."""
        return self._held is not None

    def give(self, made: Made, samples: int, *, more_may_come: bool) -> Made:
        """Return the sound to send now: none until 120 ms exist or the text so far can make no
        more. `samples`: made for the turn so far."""
        if self._held is None:
            return made
        self._held = [*self._held, *made]
        return [] if more_may_come and samples < _ENOUGH else self.all()

    def all(self) -> Made:
        """Return what is held back; from now on nothing is."""
        held, self._held = self._held or [], None
        return held
