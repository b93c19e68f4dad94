"""Which turns leave an engine that still runs, and when. No clock, no I/O.

A turn that moves loses nothing, but costs its new engine a long step. So a turn leaves an engine
that went silent, or that has more turns than it can speak, only when its listener is about to run
out of sound and another engine has capacity. All turns leave an engine that is about to stop.
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
    """Limits of moves, in seconds except `steps`.

    An engine is silent when no message came from it for `steps` times its longest recent step, and
    at least for `least_silence`. `lead`: how much sound a listener has left when its turn moves;
    the move has to be over by then. A turn that was moved stays for `rest` where it is, whatever
    happens to that engine; in an engine that has too many turns, each stays for `settled` at least.
    """

    steps: float = 3.0
    least_silence: float = 0.25
    lead: float = 0.75
    rest: float = 1.0
    settled: float = 5.0

    def is_silent(self, status: EngineStatus) -> bool:
        """Return whether the engine has been silent for too long."""
        return status.silence > max(self.least_silence, self.steps * status.step)

    def takes_turns(self, status: EngineStatus) -> bool:
        """Return whether turns should be given to the engine, if it has capacity."""
        return status.ready and not status.leaving and not self.is_silent(status)

    def stranded(self, loads: Sequence[Load]) -> list[tuple[int, Why, int]]:
        """Return (engine, why, free capacity elsewhere) for each engine that turns should leave."""
        free = [self._free_capacity(load) for load in loads]
        found = []
        for engine, load in enumerate(loads):
            why = self._why(load)
            if why is None:
                continue
            elsewhere = sum(free) - free[engine]
            if why is Why.CROWDED:
                elsewhere = min(elsewhere, _our_share(load))
            if elsewhere > 0:
                found.append((engine, why, elsewhere))
        return found

    def is_due(self, why: Why, *, lead: float, waits: bool, age: float, moved: bool) -> bool:
        """Return whether an utterance leaves such an engine now.

        `lead`: seconds of sound its listener has left. `waits`: it waits for text, so nothing is
        due from it. `age`: seconds since the engine got it; `moved`: because it was to leave
        another engine.
        """
        if why is Why.LEAVING:
            return True
        rest = self.settled if why is Why.CROWDED else self.rest * moved
        return age >= rest and not waits and lead <= self.lead

    def _free_capacity(self, load: Load) -> int:
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
    """Return how many of the turns beyond the engine's capacity this front has to move; the other
    fronts move the rest."""
    return -(-_excess(load) * load.turns // (load.turns + load.status.others))
