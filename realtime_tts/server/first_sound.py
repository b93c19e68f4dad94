"""FirstSound: what a turn has to begin with."""

from __future__ import annotations

from realtime_tts.server.made import Made

_ENOUGH = 2_880
"""Samples. A turn begins with so much sound where the engine has no text for more: the next word is
to come before it is over."""


class FirstSound:
    """Holds back what is not enough to begin with."""

    def __init__(self) -> None:
        self._held: Made | None = []

    @property
    def waits(self) -> bool:
        """Nothing was given yet."""
        return self._held is not None

    def give(self, made: Made, samples: int, *, more_may_come: bool) -> Made:
        """The same, once there is enough: or no more to come of the text there is. `samples`: of
        the turn so far."""
        if self._held is None:
            return made
        self._held = [*self._held, *made]
        return [] if more_may_come and samples < _ENOUGH else self.all()

    def all(self) -> Made:
        """What is held back; from now on nothing is."""
        held, self._held = self._held or [], None
        return held
