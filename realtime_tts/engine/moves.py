"""Which turns leave an engine that still runs, and when. No clock, no I/O.

A turn that moves loses nothing, but costs its new engine a long step. So a turn leaves an engine
that went silent, or that has more turns than it can speak, only when its listener is about to run
out of sound and another engine has capacity. All turns leave an engine that is about to stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from realtime_tts.engine.link import EngineStatus, Why

_STEPS, _LEAST_SILENCE = 3.0, 0.25
"""An engine is silent when no message came from it for this many times its longest recent step, and
at least for this many seconds."""
LEAD = 0.75
"""Seconds of sound that a listener has left when its turn moves: the move is over by then."""
_REST, _SETTLED = 1.0, 5.0
"""Seconds that a turn that was moved stays where it is, whatever happens to that engine; and that
each turn stays at least in an engine that has too many."""


class Load(NamedTuple):
    """An engine as one front sees it, which has `turns` open there."""

    status: EngineStatus
    turns: int


def is_silent(status: EngineStatus) -> bool:
    """Return whether the engine has been silent for too long."""
    return status.silence > max(_LEAST_SILENCE, _STEPS * status.step)


def takes_turns(status: EngineStatus) -> bool:
    """Return whether turns should be given to the engine, if it has capacity."""
    return status.ready and not status.leaving and not is_silent(status)


def stranded(loads: Sequence[Load]) -> list[tuple[int, Why, int]]:
    """Return (engine, why, free capacity elsewhere) for each engine that turns should leave."""
    free = [_free_capacity(load) for load in loads]
    found = []
    for engine, load in enumerate(loads):
        why = _why(load)
        if why is None:
            continue
        elsewhere = sum(free) - free[engine]
        if why is Why.CROWDED:
            elsewhere = min(elsewhere, _our_share(load))
        if elsewhere > 0:
            found.append((engine, why, elsewhere))
    return found


def is_due(why: Why, *, lead: float, waits: bool, age: float, moved: bool) -> bool:
    """Return whether an utterance leaves such an engine now.

    `lead`: seconds of sound its listener has left. `waits`: it waits for text, so nothing is due
    from it. `age`: seconds since the engine got it; `moved`: because it was to leave another one.
    """
    if why is Why.LEAVING:
        return True
    rest = _SETTLED if why is Why.CROWDED else _REST * moved
    return age >= rest and not waits and lead <= LEAD


def _free_capacity(load: Load) -> int:
    return max(0, -_excess(load)) if takes_turns(load.status) else 0


def _why(load: Load) -> Why | None:
    if not load.status.ready or not load.turns:
        return None
    if load.status.leaving:
        return Why.LEAVING
    if is_silent(load.status):
        return Why.SILENT
    return Why.CROWDED if _excess(load) > 0 else None


def _excess(load: Load) -> int:
    return load.turns + load.status.others - load.status.capacity


def _our_share(load: Load) -> int:
    """Return how many of the turns beyond the engine's capacity this front has to move; the other
    fronts move the rest."""
    return -(-_excess(load) * load.turns // (load.turns + load.status.others))
