"""Which turns leave an engine that still lives, and when. No clock, no I/O.

A turn that moves loses nothing, but costs the engine that takes it a long step. So a turn leaves an
engine that went silent, or that has more turns than it can speak, only when its listener is about
to run out of sound and another engine has room. All leave an engine that is to be stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from realtime_tts.engine.link import EngineStatus, Why


class Load(NamedTuple):
    """An engine as one front sees it, which has `turns` open there."""

    status: EngineStatus
    turns: int


@dataclass(frozen=True, slots=True)
class MovePolicy:
    """All in seconds, but `steps`.

    An engine is silent when nothing was heard of it for `steps` times its longest recent step, at
    least for `least_silence`. `lead`: how much sound a listener has left when its turn moves; the
    move has to be over by then. A turn that was moved stays for `rest` where it is, whatever
    becomes of that engine; in one that has too many, every turn stays for `settled` at least.
    """

    steps: float = 3.0
    least_silence: float = 0.25
    lead: float = 0.75
    rest: float = 1.0
    settled: float = 5.0

    def is_silent(self, status: EngineStatus) -> bool:
        return status.silence > max(self.least_silence, self.steps * status.step)

    def takes_turns(self, status: EngineStatus) -> bool:
        """Whether turns should be given to it, if it has room."""
        return status.ready and not status.leaving and not self.is_silent(status)

    def stranded(self, loads: Sequence[Load]) -> list[tuple[int, Why, int]]:
        """Which of these engines turns are to leave, why, and for how many others have room."""
        room = [self._room(load) for load in loads]
        found = []
        for engine, load in enumerate(loads):
            why = self._why(load)
            if why is None:
                continue
            elsewhere = sum(room) - room[engine]
            if why is Why.CROWDED:
                elsewhere = min(elsewhere, _our_share(load))
            if elsewhere > 0:
                found.append((engine, why, elsewhere))
        return found

    def is_due(self, why: Why, *, lead: float, waits: bool, age: float, moved: bool) -> bool:
        """Whether an utterance leaves such an engine now.

        `lead`: of its listener. `waits`: for text, so that nothing is due from it. `age`: since the
        engine was given it; `moved`: because it was to leave another one.
        """
        if why is Why.LEAVING:
            return True
        rest = self.settled if why is Why.CROWDED else self.rest * moved
        return age >= rest and not waits and lead <= self.lead

    def _room(self, load: Load) -> int:
        return max(0, -_excess(load)) if self.takes_turns(load.status) else 0

    def _why(self, load: Load) -> Why | None:
        if not load.status.ready or not load.turns:
            return None
        if load.status.leaving:
            return Why.LEAVING
        if self.is_silent(load.status):
            return Why.SILENT
        return Why.CROWDED if _excess(load) > 0 else None


def _excess(load: Load) -> int:
    return load.turns + load.status.others - load.status.capacity


def _our_share(load: Load) -> int:
    """Of the turns beyond its capacity: other fronts take theirs away."""
    return -(-_excess(load) * load.turns // (load.turns + load.status.others))
