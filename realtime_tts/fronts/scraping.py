"""A scrape of a server with several fronts: one of them is asked, and asks for the sum of all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from realtime_tts.fronts import wire
from realtime_tts.fronts.asks import Asks
from realtime_tts.fronts.child import FrontChild
from realtime_tts.fronts.merged_metrics import MergedMetrics, families_of, page_of
from realtime_tts.logs import event
from realtime_tts.metrics import Metrics

log = logging.getLogger(__name__)

_PATIENCE_SECONDS = 1.0


class Scraping:
    """Lives on the parent's event loop. `metrics` are the parent's own."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._merged = MergedMetrics()
        self._asks = Asks[FrontChild, None]()
        self._tasks: set[asyncio.Task[None]] = set()

    def answer(
        self, asker: FrontChild, asked: wire.PageWanted, fronts: Sequence[FrontChild]
    ) -> None:
        """Ask all these fronts what they count, and tell the one that was asked the sum. For one
        that does not answer counts what it told last."""
        task = asyncio.create_task(self._answer(asker, asked, fronts), name="scrape")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def told(self, front: FrontChild, message: wire.Families) -> None:
        """A front has told what it counts."""
        self._merged.told(front.serial, message.families)
        self._asks.answered(front, message.ask, None)

    def ended(self, front: FrontChild) -> None:
        """A front has ended: what it counted stays, and nobody waits for more."""
        self._merged.ended(front.serial)
        self._asks.ended(front)

    async def close(self) -> None:
        """Give up what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _answer(
        self, asker: FrontChild, asked: wire.PageWanted, fronts: Sequence[FrontChild]
    ) -> None:
        _, silent = await self._asks.ask(
            fronts, lambda front, ask: front.send(wire.FamiliesWanted(ask)), _PATIENCE_SECONDS
        )
        if silent:
            event(log, logging.WARNING, "metrics.incomplete", why="a front does not answer")
        everything = families_of(self._metrics.registry), *self._merged.of_fronts()
        # In a thread: sockets that are to be accepted do not wait for hundreds of series.
        page = await asyncio.to_thread(page_of, everything, asked.accept)
        asker.send(wire.PageMade(asked.ask, page))
