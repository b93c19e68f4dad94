"""What a load is aimed at, a server behind sockets or an engine in this process, and how the turns
that it has spoken are counted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from realtime_tts.bench.observation import Observation
from realtime_tts.bench.workload import TurnPlan

Progress = Callable[[str, int, int | None], None]
"""Called with (what, done, total) as a pass goes on; total is None where time ends it."""


class Counter:
    """Counts measured turns for the progress display."""

    def __init__(self, what: str, progress: Progress, total: int | None) -> None:
        self._what, self._progress, self._total = what, progress, total
        self._done = 0
        progress(what, 0, total)

    def one(self) -> None:
        self._done += 1
        self._progress(self._what, self._done, self._total)


class Session(Protocol):
    """One listener, who hears one turn after another."""

    async def speak(self, turn: TurnPlan) -> Observation:
        """Send the deltas in their time, and collect the packets.

        Errors of the server do not come out of here: they are part of what was observed.
        """


class Target(Protocol):
    """Something that can be given a load. All of it lives on one event loop."""

    @property
    def local(self) -> bool:
        """Whether it runs on this machine."""

    async def describe(self) -> dict[str, Any]:
        """Tell `url`, `server`, `model`, `random_weights`, `voice` and `lead_ms`.

        Raises what `session` raises.
        """

    def session(self, *, paced: bool = True) -> AbstractAsyncContextManager[Session]:
        """Open a session; unpaced, speech may run as far ahead of the listener as is allowed.

        Entering raises HandshakeRefused, OverloadedError or RequestError if it cannot be had.
        """

    async def metrics(self) -> str:
        """Read the target's counters in Prometheus' text format; empty if it has none to show."""
