"""Scrapes of a server with several fronts: the scraped front asks the parent for the sum."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from realtime_tts.background import cancel
from realtime_tts.fronts import wire
from realtime_tts.fronts.asks import Asks
from realtime_tts.fronts.child import FrontChild
from realtime_tts.fronts.merged_metrics import MergedMetrics, families_of, page_of
from realtime_tts.logs import event
from realtime_tts.metrics import Metrics

log = logging.getLogger(__name__)

_PATIENCE_SECONDS = 1.0


class Scraping:
    """Collects the metrics of all fronts; used on the parent's event loop. `metrics`: those of the
    parent itself."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._merged = MergedMetrics()
        self._asks = Asks[FrontChild, None]()
        self._tasks: set[asyncio.Task[None]] = set()

    def answer(
        self, asker: FrontChild, asked: wire.PageWanted, fronts: Sequence[FrontChild]
    ) -> None:
        """Collect the metrics of `fronts`, and send the sum to the front that was scraped, `asker`.

        A front that does not answer in time counts with what it reported last.
        """
        task = asyncio.create_task(self._answer(asker, asked, fronts), name="scrape")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def reported(self, front: FrontChild, message: wire.Families) -> None:
        """Store the metrics that a front has reported."""
        self._merged.reported(front.serial, message.families)
        self._asks.answered(front, message.ask, None)

    def ended(self, front: FrontChild) -> None:
        """Keep the counts of a front that has ended, and do not wait for its answers."""
        self._merged.ended(front.serial)
        self._asks.ended(front)

    async def close(self) -> None:
        """Cancel all scrapes that are under way."""
        await cancel(*self._tasks)

    async def _answer(
        self, asker: FrontChild, asked: wire.PageWanted, fronts: Sequence[FrontChild]
    ) -> None:
        _, silent = await self._asks.ask(
            fronts, lambda front, ask: front.send(wire.FamiliesWanted(ask)), _PATIENCE_SECONDS
        )
        if silent:
            event(log, logging.WARNING, "metrics.incomplete", why="a front does not answer")
        everything = families_of(self._metrics.registry), *self._merged.of_fronts()
        # In a thread, so that new sockets do not wait until hundreds of series are added up.
        page = await asyncio.to_thread(page_of, everything, asked.accept)
        asker.send(wire.PageMade(asked.ask, page))
