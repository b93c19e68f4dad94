"""Loads an engine and warms it up, and logs how long each stage took."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable
from types import MappingProxyType

from realtime_tts.engine.interface import Engine, Progress
from realtime_tts.engine.warm_up import taught_scheduler
from realtime_tts.logs import event
from realtime_tts.memory_limits import told_memory_limits
from tts_scheduler import Scheduler, SchedulerConfig

log = logging.getLogger(__name__)

_STAGES = MappingProxyType(
    {
        "load talker": "load",
        "load codec": "load",
        "capture graphs": "capture",
        "warm-up": "warm_up",
    }
)
"""Stages by the names that `Progress` uses. `import` comes before the first, and `build` after the
weights: kernels, and memory for keys and values."""


def start_engine(
    load: Callable[[Progress], Engine], config: SchedulerConfig, progress: Progress
) -> tuple[Engine, Scheduler]:
    """Load an engine and warm it up; return it with a scheduler that has learned its step times.
    The seconds of each stage are logged.

    Raises what `load` raises.
    """
    timer = StageTimer(progress)
    with told_memory_limits():
        engine = load(timer.progress)
        scheduler = taught_scheduler(engine, config, timer.progress)
    taken = {f"{stage}_seconds": round(seconds, 2) for stage, seconds in timer.end().items()}
    event(log, logging.INFO, "engine.started", **taken)
    return engine, scheduler


class StageTimer:
    """Measures the seconds of each stage, and passes progress on to `forward`."""

    def __init__(self, forward: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._forward, self._clock = forward, clock
        self._stage, self._since = "import", clock()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def progress(self, what: str, done: int, total: int) -> None:
        """Record the progress of a stage; the time from its end to the next stage is `build`."""
        self._lap("build" if done == total else _STAGES.get(what, what))
        self._forward(what, done, total)

    def end(self) -> dict[str, float]:
        """Return the seconds of each stage, in their order, and the sum as `all`."""
        self._lap("")
        return {**self._seconds, "all": sum(self._seconds.values())}

    def _lap(self, stage: str) -> None:
        now = self._clock()
        if stage != self._stage:
            self._seconds[self._stage] += now - self._since
            self._stage, self._since = stage, now
