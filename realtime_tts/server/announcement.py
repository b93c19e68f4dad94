"""The log lines about the engines, once they take turns."""

from __future__ import annotations

import logging

from realtime_tts.engine.interface import EngineInfo
from realtime_tts.engine.link import EngineStatus
from realtime_tts.logs import event

log = logging.getLogger(__name__)


def announce(info: EngineInfo, status: EngineStatus) -> None:
    """Log which engines take turns now."""
    runs = [f"{one.device}: {one}" for one in info.executions]
    event(
        log,
        logging.INFO,
        "engine.ready",
        model=info.model,
        slots=info.slots,
        capacity=status.capacity,
        runs=runs,
    )
    if info.random_weights:
        event(log, logging.WARNING, "engine.random_weights", speech="noise")
